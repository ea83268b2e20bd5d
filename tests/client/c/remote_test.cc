// Servers behind the C interface, by libsap_islands_client: the answers of this process, and what
// only a server has: losses, drains, waits that end, forks. The servers are processes of their own.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/c/c_objects.h"
#include "tests/client/c/late_notifications.h"
#include "tests/client/c/pile.h"
#include "tests/client/c/server_process.h"
#include "tests/support/child_process.h"

namespace sap::test {
namespace {

std::vector<double> ListOf(const sap_doubles& array) {
  return {array.data, array.data + array.length};
}

// The numbers of a solution that are a function of the problem.
std::vector<std::vector<double>> NumbersOf(const Answer& answer) {
  const sap_solution* solution = answer.solution();
  EXPECT_NE(solution, nullptr) << answer.error().message;
  if (solution == nullptr) return {};
  const sap_island_reports& islands = *solution->islands;
  return {ListOf(solution->velocity),
          ListOf(solution->impulse),
          ListOf(solution->contact_velocity),
          ListOf(solution->delassus_estimate),
          {solution->cost},
          ListOf(islands.momentum_residual),
          ListOf(islands.optimality_gap_bound),
          ListOf(islands.cost)};
}

sap_call Call() {
  sap_call call{};
  call.struct_size = sizeof call;
  return call;
}

int EndOfChild(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class RemoteTest : public testing::Test {
 protected:
  const sap_problem* problem() const { return &pile_.problem; }

  std::vector<std::vector<double>> SolvedBy(const Client& client) {
    const Answer answer;
    sap_solve(client.get(), problem(), nullptr, nullptr, answer.get());
    return NumbersOf(answer);
  }

  // The numbers of a step; steps of one number have one problem.
  std::vector<std::vector<double>> SteppedBy(const Session& session, int step) {
    pile_.v_star[0] = 0.1 + 0.01 * step;
    const Answer answer;
    sap_session_step(session.get(), problem(), nullptr, nullptr, answer.get());
    return NumbersOf(answer);
  }

  Pile pile_{5};
  Client here_{2};
};

TEST_F(RemoteTest, AServerHasTheAnswersOfThisProcess) {
  const ServerProcess server;
  const Client there(server.address());
  EXPECT_EQ(SolvedBy(there), SolvedBy(here_));
  const Answer answer;
  ASSERT_EQ(sap_info(there.get(), nullptr, answer.get()), SAP_OK);
  EXPECT_STREQ(sap_answer_info(answer.get())->version, sap_version());
  EXPECT_GT(sap_answer_info(answer.get())->max_contacts, 0u);
  EXPECT_EQ(sap_health(there.get(), nullptr, answer.get()), SAP_OK);
}

// A message holds nanoseconds, and a positive time is not rounded to none.
TEST_F(RemoteTest, ATimeBudgetOfLessThanANanosecondIsOneHereAndThere) {
  const ServerProcess server;
  const Client there(server.address());
  for (const double budget_s : {5e-324, 1e-12, 9e-10, 1e-9}) {
    sap_options options{};
    options.struct_size = sizeof options;
    options.time_budget_s = &budget_s;
    for (const Client* client : std::initializer_list<const Client*>{&here_, &there}) {
      const Answer answer;
      EXPECT_EQ(sap_solve(client->get(), problem(), &options, nullptr, answer.get()), SAP_OK)
          << budget_s << ": " << answer.error().message;
    }
  }
}

TEST_F(RemoteTest, BatchesHaveTheAnswersOfThisProcess) {
  const ServerProcess server;
  const Client there(server.address());
  const auto expected = SolvedBy(here_);
  std::vector<Answer> answers(5);
  std::vector<sap_answer*> list;
  for (const Answer& answer : answers) list.push_back(answer.get());
  std::vector<const sap_problem*> problems(5, problem());
  problems[3] = nullptr;
  ASSERT_EQ(sap_solve_batch(there.get(), 5, problems.data(), nullptr, nullptr, list.data()),
            SAP_OK);
  for (const int i : {0, 1, 2, 4}) EXPECT_EQ(NumbersOf(answers[i]), expected);
  EXPECT_STREQ(answers[3].error().field, "problem");
  sap_batch* batch = nullptr;
  ASSERT_EQ(sap_batch_begin(there.get(), 5, problems.data(), nullptr, nullptr, list.data(), &batch),
            SAP_OK);
  std::set<int64_t> ended;
  for (int64_t i = sap_batch_next(batch, nullptr); i >= 0; i = sap_batch_next(batch, nullptr)) {
    ended.insert(i);
    if (i != 3) {
      EXPECT_EQ(NumbersOf(answers[i]), expected);
    }
  }
  EXPECT_EQ(ended.size(), 5u);
  sap_batch_free(batch);
}

TEST_F(RemoteTest, DerivativesAreThoseOfThisProcess) {
  const ServerProcess server;
  const Client there(server.address());
  const std::vector<double> weights(pile_.v_star.size(), 0.5);
  sap_cotangent cotangent{};
  cotangent.struct_size = sizeof cotangent;
  cotangent.velocity = {weights.data(), static_cast<int64_t>(weights.size())};
  const sap_cotangent* cotangents[] = {&cotangent};
  const char* wanted[] = {"body_contacts.friction", "bodies.mass", "time_step"};
  sap_differentiation request{};
  request.struct_size = sizeof request;
  request.problem = problem();
  request.num_cotangents = 1;
  request.cotangents = cotangents;
  request.num_wanted = 3;
  request.wanted = wanted;
  const auto differentiated = [&](const Client& client) -> std::vector<std::vector<double>> {
    const Answer answer;
    sap_differentiate(client.get(), &request, nullptr, answer.get());
    const sap_derivatives* derivatives = sap_answer_derivatives(answer.get());
    EXPECT_NE(derivatives, nullptr) << answer.error().message;
    if (derivatives == nullptr || derivatives->num_gradients != 1) return {};
    const sap_problem& gradient = *derivatives->gradients[0]->problem;
    EXPECT_EQ(gradient.bodies->inertia.length, 0);
    EXPECT_EQ(gradient.regularization->sigma, nullptr);
    return {ListOf(gradient.body_contacts->laws->friction),
            ListOf(gradient.bodies->mass),
            {gradient.time_step},
            ListOf(derivatives->kink_margin)};
  };
  EXPECT_EQ(differentiated(there), differentiated(here_));
}

TEST_F(RemoteTest, AnErrorHasFieldIndexRequestAndServer) {
  const ServerProcess server;
  const Client there(server.address());
  pile_.friction[7] = -1;
  sap_call call = Call();
  call.request_id = "step 17 of the test";
  const Answer answer;
  EXPECT_EQ(sap_solve(there.get(), problem(), nullptr, &call, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "body_contacts.friction[7]");
  EXPECT_EQ(answer.error().index, 7);
  EXPECT_STREQ(answer.error().request_id, "step 17 of the test");
  EXPECT_STRNE(answer.error().server, "");
}

TEST_F(RemoteTest, StepsInFlightAreTakenInOrderAndWithdrawnOnesHaveNoEffect) {
  const ServerProcess server;
  const Client there(server.address());
  const Session session(there), expected(here_);
  const Answer answer;
  const auto first = SteppedBy(expected, 1), second = SteppedBy(expected, 2);
  const auto send = [&](int step) {
    pile_.v_star[0] = 0.1 + 0.01 * step;
    EXPECT_EQ(sap_session_send(session.get(), problem(), nullptr, nullptr, answer.get()), SAP_OK)
        << answer.error().message;
    return sap_answer_step_id(answer.get());
  };
  send(1);
  const uint64_t withdrawn = send(7);
  EXPECT_EQ(sap_session_withdraw(session.get(), withdrawn, answer.get()), SAP_OK)
      << answer.error().message;
  send(2);
  EXPECT_EQ(sap_session_in_flight(session.get()), 2);
  EXPECT_EQ(sap_session_take(session.get(), nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(NumbersOf(answer), first);
  EXPECT_EQ(sap_session_await_outcome(session.get(), nullptr), 1);
  EXPECT_EQ(sap_session_take(session.get(), nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(NumbersOf(answer), second);
  EXPECT_EQ(answer.solution()->warm_started, 1);
}

TEST_F(RemoteTest, ASessionInTheBackgroundSaysWhatArrivesByAnEventfd) {
  const ServerProcess server;
  const Client there(server.address());
  sap_call call = Call();
  call.background = 1;
  const Session session(there, &call), expected(here_);
  const Answer answer;
  const int fd = eventfd(0, 0);
  sap_session_notify(session.get(), sap_notify_eventfd,
                     reinterpret_cast<void*>(static_cast<intptr_t>(fd)), answer.get());
  for (int step = 0; step < 3; ++step) {
    const auto numbers = SteppedBy(expected, step);
    ASSERT_EQ(sap_session_send(session.get(), problem(), nullptr, nullptr, answer.get()), SAP_OK);
    const double now = 0;
    while (sap_session_await_outcome(session.get(), &now) == 0) {
      pollfd event{.fd = fd, .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&event, 1, -1), 1);
      eventfd_t count;
      eventfd_read(fd, &count);
    }
    ASSERT_EQ(sap_session_take(session.get(), nullptr, answer.get()), SAP_OK);
    EXPECT_EQ(NumbersOf(answer), numbers);
  }
  sap_session_notify(session.get(), nullptr, nullptr, answer.get());
  close(fd);
}

TEST_F(RemoteTest, ASessionOverAListGoesOnWhereAServerIsKilledOrDrains) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    const ServerProcess one, other;
    const Client there(one.address() + "," + other.address());
    const Session session(there), expected(here_);
    EXPECT_EQ(SteppedBy(session, 0), SteppedBy(expected, 0));
    one.Signal(signal);
    for (int step = 1; step <= 20; ++step) {
      EXPECT_TRUE(SteppedBy(session, step) == SteppedBy(expected, step)) << step;
    }
  }
}

// Whatever happens to the connections of a client of several servers, whose gRPC draws a random
// number at each change. In glibc random() and rand() are one sequence.
TEST_F(RemoteTest, TheRandomNumbersOfTheHostAreItsOwn) {
  constexpr int kNumbers = 8;
  std::vector<long> expected, drawn;
  srandom(1);
  for (int i = 0; i < kNumbers; ++i) expected.push_back(random());
  const ServerProcess first;
  auto second = std::make_unique<ServerProcess>();
  srandom(1);
  const Client there(first.address() + "," + second->address());
  for (int i = 0; i < kNumbers; ++i) {
    drawn.push_back(random());
    if (i == kNumbers / 2) second.reset();
    SolvedBy(there);
  }
  EXPECT_EQ(drawn, expected);
}

TEST_F(RemoteTest, AStopAndADeadlineEndTheWaitForAServerThatHangs) {
  const ServerProcess server;
  const Client there(server.address());
  const Session session(there);
  SteppedBy(session, 1);
  server.Signal(SIGSTOP);
  sap_stop* stop = sap_stop_new();
  sap_call call = Call();
  call.stop = stop;
  std::thread other([stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    sap_stop_request(stop);
  });
  const Answer answer;
  EXPECT_EQ(sap_session_step(session.get(), problem(), nullptr, &call, answer.get()),
            SAP_CANCELLED);
  other.join();
  EXPECT_EQ(sap_solve(there.get(), problem(), nullptr, &call, answer.get()), SAP_CANCELLED);
  call.stop = nullptr;
  const double deadline_s = 0.02;
  call.deadline_s = &deadline_s;
  EXPECT_EQ(sap_solve(there.get(), problem(), nullptr, &call, answer.get()), SAP_DEADLINE_EXCEEDED);
  server.Signal(SIGCONT);
  sap_stop_free(stop);
}

TEST_F(RemoteTest, ASessionOpensWhileSomebodyWaitsAndItsOpenerGoesOn) {
  const ServerProcess server;
  const Client there(server.address());
  const int32_t low_latency = 1;
  sap_call call = Call();
  call.opens_later = 1;
  call.low_latency = &low_latency;
  server.Signal(SIGSTOP);
  const Session session(there, &call);
  const double soon = 0.05;
  EXPECT_EQ(sap_session_await_open(session.get(), &soon), 0);
  server.Signal(SIGCONT);
  EXPECT_EQ(sap_session_await_open(session.get(), nullptr), 1);
  const Session expected(here_);
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(SteppedBy(session, step), SteppedBy(expected, step));
  }
}

TEST_F(RemoteTest, ABatchThatIsStoppedFailsAsAWholeHereAndThere) {
  const ServerProcess server;
  const Client there(server.address());
  sap_stop* stop = sap_stop_new();
  sap_stop_request(stop);
  sap_call call{};
  call.struct_size = sizeof call;
  call.stop = stop;
  const sap_problem* problems[] = {problem(), problem()};
  for (const Client* client : std::initializer_list<const Client*>{&here_, &there}) {
    const Answer first, second;
    sap_answer* list[] = {first.get(), second.get()};
    EXPECT_EQ(sap_solve_batch(client->get(), 2, problems, nullptr, &call, list), SAP_CANCELLED);
    EXPECT_EQ(second.error().kind, SAP_CANCELLED);
  }
  sap_stop_free(stop);
}

TEST_F(RemoteTest, ServersInOrderAreTheFirstThatCanBeReached) {
  const ServerProcess first, second;
  const auto boot_id = [](const Client& client) {
    const Answer answer;
    EXPECT_EQ(sap_info(client.get(), nullptr, answer.get()), SAP_OK) << answer.error().message;
    return std::string(sap_answer_info(answer.get())->boot_id);
  };
  sap_connect_options options{};
  options.struct_size = sizeof options;
  options.in_order = 1;
  const Client there(first.address() + "," + second.address(), &options);
  const std::string first_id = boot_id(Client(first.address()));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(boot_id(there), first_id);
  first.Signal(SIGKILL);
  EXPECT_EQ(boot_id(there), boot_id(Client(second.address())));
}

TEST_F(RemoteTest, ASceneMayBeDividedOverConnectionsWhoseNumberHasARange) {
  const ServerProcess server;
  sap_connect_options options{};
  options.struct_size = sizeof options;
  options.scene_connections = 64;
  const Client there(server.address(), &options);
  const Answer here_answer, there_answer;
  EXPECT_EQ(sap_solve(here_.get(), problem(), nullptr, nullptr, here_answer.get()), SAP_OK);
  EXPECT_EQ(sap_solve(there.get(), problem(), nullptr, nullptr, there_answer.get()), SAP_OK);
  EXPECT_EQ(NumbersOf(there_answer), NumbersOf(here_answer));
  for (const int connections : {-1, 65}) {
    options.scene_connections = connections;
    const Answer answer;
    sap_client* client = nullptr;
    EXPECT_EQ(sap_connect(server.address().c_str(), &options, nullptr, &client, answer.get()),
              SAP_INVALID_ARGUMENT);
    EXPECT_STREQ(answer.error().field, "scene_connections");
  }
}

TEST_F(RemoteTest, ASessionThatMayNotReconnectEndsWithItsServer) {
  const ServerProcess server;
  const Client there(server.address());
  const double never = 0;
  sap_call call = Call();
  call.reconnect_within_s = &never;
  const Session session(there, &call);
  SteppedBy(session, 0);
  server.Signal(SIGKILL);
  const Answer answer;
  EXPECT_EQ(sap_session_step(session.get(), problem(), nullptr, nullptr, answer.get()),
            SAP_UNAVAILABLE);
  EXPECT_EQ(sap_session_is_open(session.get()), 0);
}

TEST_F(RemoteTest, ACallInTheBackgroundGoesOnWhenItsClientIsFreed) {
  const ServerProcess server;
  auto there = std::make_unique<Client>(server.address());
  const auto expected = SolvedBy(here_);
  sap_call call = Call();
  call.background = 1;
  const Answer answer;
  server.Signal(SIGSTOP);
  ASSERT_EQ(sap_solve(there->get(), problem(), nullptr, &call, answer.get()), SAP_OK);
  there.reset();
  server.Signal(SIGCONT);
  sap_answer_await(answer.get(), nullptr);
  EXPECT_EQ(NumbersOf(answer), expected);
}

TEST_F(RemoteTest, AnEventfdMayBeClosedOnceAwaitHasReturned) {
  const ServerProcess server;
  const Client there(server.address());
  EXPECT_EQ(LateNotifications(there, Pile(1).problem, 500), 0);
}

TEST_F(RemoteTest, LimitsAreThoseOfTheServer) {
  const ServerProcess server({"--queue-timeout-s", "0.5", "--session-idle-s", "7"});
  const Client there(server.address());
  const Answer answer;
  ASSERT_EQ(sap_info(there.get(), nullptr, answer.get()), SAP_OK);
  const sap_server_info* info = sap_answer_info(answer.get());
  EXPECT_EQ(info->queue_timeout_s, 0.5);
  EXPECT_EQ(info->session_idle_s, 7);
  EXPECT_GT(info->max_client_calls, 0u);
  EXPECT_GT(info->max_held_bytes, 0u);
  EXPECT_GT(info->max_client_bytes, 0u);
  EXPECT_GT(info->read_timeout_s, 0);
}

TEST_F(RemoteTest, NoServerIsAnErrorOfTheConnection) {
  sap_connect_options options{};
  options.struct_size = sizeof options;
  const double timeout_s = 0.05;
  options.connect_timeout_s = &timeout_s;
  options.reconnect_within_s = &timeout_s;
  sap_client* client = nullptr;
  const Answer answer;
  EXPECT_EQ(sap_connect("127.0.0.1:1", &options, nullptr, &client, answer.get()), SAP_UNAVAILABLE);
  EXPECT_EQ(client, nullptr);
  EXPECT_EQ(sap_connect("nonsense", &options, nullptr, &client, answer.get()),
            SAP_INVALID_ARGUMENT);
}

TEST_F(RemoteTest, AChildOfAForkIsRefusedAndItsParentGoesOn) {
  const ServerProcess server;
  auto there = std::make_unique<Client>(server.address());
  auto session = std::make_unique<Session>(*there);
  const auto expected = SolvedBy(here_);
  pile_.v_star[0] = 0.1;
  SteppedBy(*session, 0);
  EXPECT_EQ(EndOfChild([&] {
              const Answer answer;
              sap_client* client = nullptr;
              const auto refused = [&](int32_t kind) { return kind == SAP_FAILED_PRECONDITION; };
              return refused(sap_solve(there->get(), problem(), nullptr, nullptr, answer.get())) &&
                     refused(sap_session_step(session->get(), problem(), nullptr, nullptr,
                                              answer.get())) &&
                     refused(sap_connect(server.address().c_str(), nullptr, nullptr, &client,
                                         answer.get())) &&
                     SolvedBy(here_) == expected;
            }),
            0);
  // What the child frees is the parent's.
  EXPECT_EQ(EndOfChild([&] {
              session.reset();
              there.reset();
              return true;
            }),
            0);
  EXPECT_EQ(SolvedBy(*there), expected);
  SteppedBy(*session, 1);
}

TEST_F(RemoteTest, ProblemsAndSolutionsPassThroughBytesAndFiles) {
  const TemporaryDirectory directory;
  const auto expected = SolvedBy(here_);
  const Answer written, read, solved;
  for (const int32_t format : {SAP_FORMAT_BINARY, SAP_FORMAT_JSON}) {
    ASSERT_EQ(sap_format_problem(problem(), format, written.get()), SAP_OK);
    ASSERT_EQ(sap_parse_problem(sap_answer_bytes(written.get()), format, read.get()), SAP_OK)
        << read.error().message;
    sap_solve(here_.get(), sap_answer_problem(read.get()), nullptr, nullptr, solved.get());
    EXPECT_EQ(NumbersOf(solved), expected);
    ASSERT_EQ(sap_format_solution(solved.solution(), format, written.get()), SAP_OK);
    ASSERT_EQ(sap_parse_solution(sap_answer_bytes(written.get()), format, read.get()), SAP_OK);
    EXPECT_EQ(NumbersOf(read), expected);
  }
  for (const char* name : {"problem.json", "problem.pb", "problem.json.gz"}) {
    const std::string path = directory / name;
    ASSERT_EQ(sap_save_problem(problem(), path.c_str(), written.get()), SAP_OK);
    ASSERT_EQ(sap_load_problem(path.c_str(), read.get()), SAP_OK) << read.error().message;
    sap_solve(here_.get(), sap_answer_problem(read.get()), nullptr, nullptr, solved.get());
    EXPECT_EQ(NumbersOf(solved), expected);
  }
  // Numbers that are absent stay so.
  sap_regularization regularization{};
  regularization.struct_size = sizeof regularization;
  const double sigma = 0.25;
  regularization.sigma = &sigma;
  pile_.problem.regularization = &regularization;
  ASSERT_EQ(sap_format_problem(problem(), SAP_FORMAT_JSON, written.get()), SAP_OK);
  ASSERT_EQ(sap_parse_problem(sap_answer_bytes(written.get()), SAP_FORMAT_JSON, read.get()),
            SAP_OK);
  EXPECT_EQ(*sap_answer_problem(read.get())->regularization->sigma, 0.25);
  EXPECT_EQ(sap_answer_problem(read.get())->regularization->beta, nullptr);
  EXPECT_EQ(sap_parse_problem({"{\"frcition\": 1}", 15}, SAP_FORMAT_JSON, read.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(read.error().message).find("frcition"), std::string::npos);
  EXPECT_EQ(sap_load_problem("/nowhere", read.get()), SAP_INVALID_ARGUMENT);
}

TEST_F(RemoteTest, ARecordingIsReadAsItWasWritten) {
  const TemporaryDirectory directory;
  const std::string path = directory / "recording";
  const Answer solved, failed, answer, read;
  const double tolerance = 1e-4;
  const uint32_t rounds = 7;
  sap_coulomb_friction coulomb{};
  coulomb.struct_size = sizeof coulomb;
  coulomb.max_rounds = &rounds;
  sap_options options{};
  options.struct_size = sizeof options;
  options.relative_tolerance = &tolerance;
  options.coulomb = &coulomb;
  sap_solve(here_.get(), problem(), &options, nullptr, solved.get());
  sap_solve(here_.get(), nullptr, nullptr, nullptr, failed.get());
  sap_recording* recording = nullptr;
  ASSERT_EQ(sap_recording_create(path.c_str(), &recording, answer.get()), SAP_OK);
  sap_record record{};
  record.struct_size = sizeof record;
  record.version = "1.2.3";
  record.instruction_set = "abacus";
  record.arrival_time_ns = 1'700'000'000'123'456'789;
  record.duration_s = 0.25;
  record.problem = problem();
  record.options = &options;
  record.solution = solved.solution();
  EXPECT_EQ(sap_recording_write(recording, &record, answer.get()), SAP_OK);
  record.solution = nullptr;
  sap_error error = failed.error();
  error.retry_after_s = 0.25;
  record.error = &error;
  EXPECT_EQ(sap_recording_write(recording, &record, answer.get()), SAP_OK);
  record.error = nullptr;
  EXPECT_EQ(sap_recording_write(recording, &record, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_recording_close(recording, answer.get()), SAP_OK);
  sap_recording_free(recording);
  ASSERT_EQ(sap_recording_open(path.c_str(), &recording, answer.get()), SAP_OK);
  ASSERT_EQ(sap_recording_read(recording, read.get()), SAP_OK) << read.error().message;
  const sap_record* first = sap_answer_record(read.get());
  EXPECT_STREQ(first->version, "1.2.3");
  EXPECT_STREQ(first->instruction_set, "abacus");
  EXPECT_EQ(first->arrival_time_ns, record.arrival_time_ns);
  EXPECT_EQ(first->duration_s, 0.25);
  EXPECT_EQ(*first->options->relative_tolerance, tolerance);
  EXPECT_EQ(first->options->max_iterations, nullptr);  // absent as it was
  EXPECT_EQ(first->options->newton, 0);
  EXPECT_EQ(*first->options->coulomb->max_rounds, rounds);
  EXPECT_EQ(first->options->coulomb->tolerance, nullptr);
  ASSERT_GT(solved.solution()->islands->coulomb_defect.length, 0);
  EXPECT_EQ(ListOf(first->solution->islands->coulomb_defect),
            ListOf(solved.solution()->islands->coulomb_defect));
  EXPECT_EQ(ListOf(first->solution->velocity), ListOf(solved.solution()->velocity));
  sap_solve(here_.get(), first->problem, first->options, nullptr, answer.get());
  EXPECT_EQ(NumbersOf(answer), NumbersOf(solved));
  ASSERT_EQ(sap_recording_read(recording, read.get()), SAP_OK);
  EXPECT_STREQ(sap_answer_record(read.get())->error->message, failed.error().message);
  EXPECT_EQ(sap_answer_record(read.get())->error->retry_after_s, 0.25);
  EXPECT_EQ(sap_answer_record(read.get())->solution, nullptr);
  EXPECT_EQ(sap_recording_read(recording, read.get()), SAP_OK);
  EXPECT_EQ(sap_answer_record(read.get()), nullptr);
  record.error = &error;
  EXPECT_EQ(sap_recording_write(recording, &record, read.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(read.error().message, path + ": is not open to be written");
  EXPECT_EQ(sap_recording_close(recording, read.get()), SAP_OK);
  EXPECT_EQ(sap_recording_read(recording, read.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(read.error().message, path + ": is not open to be read");
  sap_recording_free(recording);
}

TEST_F(RemoteTest, WhatIsNoRecordingEndsWithAnError) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "";
  Answer answer;
  sap_recording* recording = nullptr;
  ASSERT_EQ(sap_recording_open(path.c_str(), &recording, answer.get()), SAP_OK);
  EXPECT_EQ(sap_recording_read(recording, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(answer.error().message, path + ": cannot read: Is a directory");
  sap_recording_free(recording);
  EXPECT_EQ(sap_recording_open("/no/such/file", &recording, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_recording_read(recording, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().message, "the recording is NULL");
}

}  // namespace
}  // namespace sap::test
