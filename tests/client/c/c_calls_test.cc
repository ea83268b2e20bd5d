// How calls of the C interface are made: in the background, until a time, until a stop, with steps
// in flight; what is refused instead of read; structs of other sizes. In this process.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/c/c_objects.h"
#include "tests/client/c/late_notifications.h"
#include "tests/client/c/pile.h"

namespace sap::test {
namespace {

std::vector<double> VelocityOf(const Answer& answer) {
  const sap_solution* solution = answer.solution();
  if (solution == nullptr) return {};
  return {solution->velocity.data, solution->velocity.data + solution->velocity.length};
}

sap_call Call() {
  sap_call call{};
  call.struct_size = sizeof call;
  return call;
}

void Count(void* context) { ++*static_cast<std::atomic<int>*>(context); }

class CCallsTest : public testing::Test {
 protected:
  std::vector<double> Solved() {
    const Answer answer;
    EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, nullptr, answer.get()), SAP_OK);
    return VelocityOf(answer);
  }

  Pile pile_{5};
  Client client_{2};
};

TEST_F(CCallsTest, ACallInTheBackgroundEndsWithACallbackAndTheSameAnswer) {
  std::atomic<int> ended{0};
  sap_call call = Call();
  call.background = 1;
  call.done = Count;
  call.context = &ended;
  const Answer answer;
  ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer.get()), SAP_OK);
  EXPECT_EQ(sap_answer_await(answer.get(), nullptr), 1);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(VelocityOf(answer), Solved());
}

// A `done` that goes on for a while after it has told its host.
struct LongDone {
  std::atomic<bool> called{false};
  std::atomic<int> returned{0};

  static void Run(void* context) {
    auto* self = static_cast<LongDone*>(context);
    self->called = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ++self->returned;
  }
  void AwaitCall() const {
    while (!called) std::this_thread::yield();
  }
};

// Then the context of the callback may be freed.
TEST_F(CCallsTest, AwaitReturnsOnceTheCallbackHasReturned) {
  const double now = 0;
  for (const double* wait_s : {static_cast<const double*>(nullptr), &now}) {
    LongDone done;
    sap_call call = Call();
    call.background = 1;
    call.done = LongDone::Run;
    call.context = &done;
    const Answer answer;
    ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer.get()), SAP_OK);
    // Whoever was woken by the callback looks without waiting for the call, and is not woken again.
    if (wait_s != nullptr) done.AwaitCall();
    EXPECT_EQ(sap_answer_await(answer.get(), wait_s), 1);
    EXPECT_EQ(done.returned, 1);
  }
}

// A host that was told may free the answer, or use it for the next call, without an await.
TEST_F(CCallsTest, AnAnswerIsItsHostsOnceTheCallbackIsCalled) {
  const std::vector<double> expected = Solved();
  LongDone first, second;
  sap_call call = Call();
  call.background = 1;
  call.done = LongDone::Run;
  call.context = &first;
  auto answer = std::make_unique<Answer>();
  ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer->get()), SAP_OK);
  first.AwaitCall();
  EXPECT_EQ(VelocityOf(*answer), expected);
  call.context = &second;
  ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer->get()), SAP_OK);
  EXPECT_EQ(sap_answer_await(answer->get(), nullptr), 1);
  EXPECT_EQ(second.returned, 1);  // not the end of the first call
  EXPECT_EQ(VelocityOf(*answer), expected);
  LongDone third;
  call.context = &third;
  ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer->get()), SAP_OK);
  third.AwaitCall();
  answer.reset();
  while (third.returned == 0 || first.returned == 0) std::this_thread::yield();
}

// The number of a descriptor that is closed is that of the next one, which another part of the
// program may open.
TEST_F(CCallsTest, AnEventfdMayBeClosedOnceAwaitHasReturned) {
  EXPECT_EQ(LateNotifications(Client(1), Pile(1).problem, 1000), 0);
}

// All answers of a batch end together.
TEST_F(CCallsTest, AwaitOfAnyAnswerOfABatchReturnsOnceTheCallbackHasReturned) {
  for (const int awaited : {0, 1}) {
    LongDone done;
    sap_call call = Call();
    call.background = 1;
    call.done = LongDone::Run;
    call.context = &done;
    const Answer answers[2];
    sap_answer* const list[] = {answers[0].get(), answers[1].get()};
    const sap_problem* const problems[] = {&pile_.problem, &pile_.problem};
    ASSERT_EQ(sap_solve_batch(client_.get(), 2, problems, nullptr, &call, list), SAP_OK);
    EXPECT_EQ(sap_answer_await(list[awaited], nullptr), 1);
    EXPECT_EQ(done.returned, 1);
  }
}

TEST_F(CCallsTest, ACallInTheBackgroundGoesOnWhenItsClientIsFreed) {
  const std::vector<double> expected = Solved();
  auto client = std::make_unique<Client>(2);
  sap_call call = Call();
  call.background = 1;
  const Answer answer;
  ASSERT_EQ(sap_solve(client->get(), &pile_.problem, nullptr, &call, answer.get()), SAP_OK);
  client.reset();
  sap_answer_await(answer.get(), nullptr);
  EXPECT_EQ(VelocityOf(answer), expected);
}

TEST_F(CCallsTest, AnEventfdBecomesReadableWhenACallEnds) {
  const int fd = eventfd(0, 0);
  sap_call call = Call();
  call.background = 1;
  call.done = sap_notify_eventfd;
  call.context = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  const Answer answer;
  ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer.get()), SAP_OK);
  pollfd event{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&event, 1, -1), 1);
  EXPECT_EQ(VelocityOf(answer), Solved());
  close(fd);
}

TEST_F(CCallsTest, CallsThatShareAnEventfdSayWhichOfThemHasEnded) {
  const int fd = eventfd(0, 0);
  uint8_t flags[3] = {0, 0, 0};
  sap_event events[3] = {{&flags[0], fd}, {&flags[1], fd}, {&flags[2], fd}};
  Answer answers[3];
  for (const int ended : {2, 0, 1}) {
    sap_call call = Call();
    call.background = 1;
    call.done = sap_notify_event;
    call.context = &events[ended];
    ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answers[ended].get()),
              SAP_OK);
    eventfd_t count = 0;
    eventfd_read(fd, &count);
    EXPECT_EQ(count, 1u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(flags[i], i == ended);
    EXPECT_EQ(VelocityOf(answers[ended]), Solved());
    flags[ended] = 0;
  }
  close(fd);
}

TEST_F(CCallsTest, AnErrorInTheBackgroundIsThatOfTheAnswer) {
  sap_call call = Call();
  call.background = 1;
  pile_.problem.time_step = -1;
  const Answer answer;
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer.get()), SAP_OK);
  sap_answer_await(answer.get(), nullptr);
  EXPECT_EQ(answer.error().kind, SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "time_step");
}

// One error of a batch's problems leaves the batch without one; wrong options are an error of all.
TEST_F(CCallsTest, ABatchInTheBackgroundSaysHowItEndedAsAWhole) {
  sap_problem wrong = pile_.problem;
  wrong.time_step = -1;
  const sap_problem* const problems[] = {&pile_.problem, &wrong};
  const Answer first, second;
  sap_answer* const answers[] = {first.get(), second.get()};
  int32_t kind = -1;
  sap_call call = Call();
  call.background = 1;
  call.kind = &kind;
  ASSERT_EQ(sap_solve_batch(client_.get(), 2, problems, nullptr, &call, answers), SAP_OK);
  ASSERT_EQ(sap_answer_await(first.get(), nullptr), 1);
  EXPECT_EQ(kind, SAP_OK);
  EXPECT_EQ(second.error().kind, SAP_INVALID_ARGUMENT);
  const double tolerance = 2;
  sap_options options{};
  options.struct_size = sizeof options;
  options.relative_tolerance = &tolerance;
  ASSERT_EQ(sap_solve_batch(client_.get(), 2, problems, &options, &call, answers), SAP_OK);
  ASSERT_EQ(sap_answer_await(first.get(), nullptr), 1);
  EXPECT_EQ(kind, SAP_INVALID_ARGUMENT);
  EXPECT_EQ(first.error().kind, SAP_INVALID_ARGUMENT);
}

TEST_F(CCallsTest, AStopFromAnotherThreadEndsASolve) {
  Pile large(16);
  sap_stop* stop = sap_stop_new();
  sap_call call = Call();
  call.background = 1;
  call.stop = stop;
  const double tolerance = 0;  // would go on to round-off
  sap_options options{};
  options.struct_size = sizeof options;
  options.relative_tolerance = &tolerance;
  options.newton = SAP_NEWTON_GAUSS_SEIDEL;
  const uint32_t iterations = 2'000'000'000;
  options.max_iterations = &iterations;
  const Answer answer;
  ASSERT_EQ(sap_solve(client_.get(), &large.problem, &options, &call, answer.get()), SAP_OK);
  sap_stop_request(stop);
  sap_answer_await(answer.get(), nullptr);
  EXPECT_EQ(answer.error().kind, SAP_CANCELLED);
  sap_stop_free(stop);
}

TEST_F(CCallsTest, ADeadlineThatHasPassedIsAnErrorAndOneToComeIsMet) {
  sap_call call = Call();
  double deadline_s = 0;
  call.deadline_s = &deadline_s;
  const Answer answer;
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer.get()),
            SAP_DEADLINE_EXCEEDED);
  deadline_s = 1000;
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &call, answer.get()), SAP_OK);
  EXPECT_EQ(VelocityOf(answer), Solved());
}

TEST_F(CCallsTest, AResponseMaskLeavesTheOtherFieldsEmpty) {
  const char* names[] = {"velocity", "islands"};
  sap_options options{};
  options.struct_size = sizeof options;
  options.num_response_mask = 2;
  options.response_mask = names;
  const Answer answer;
  ASSERT_EQ(sap_solve(client_.get(), &pile_.problem, &options, nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(VelocityOf(answer), Solved());
  EXPECT_EQ(answer.solution()->impulse.length, 0);
  EXPECT_EQ(answer.solution()->cost, 0);
  EXPECT_GT(answer.solution()->islands->cost.length, 0);
  names[1] = "velocities";
  sap_solve(client_.get(), &pile_.problem, &options, nullptr, answer.get());
  EXPECT_STREQ(answer.error().field, "options.response_mask.paths[1]");
  EXPECT_EQ(answer.error().index, 1);
}

TEST_F(CCallsTest, OutcomesOfStepsInFlightAreTakenInTheirOrder) {
  const Session one_by_one(client_), in_flight(client_);
  const Answer answer;
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < 3; ++i) {
    sap_session_step(one_by_one.get(), &pile_.problem, nullptr, nullptr, answer.get());
    expected.push_back(VelocityOf(answer));
  }
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(sap_session_send(in_flight.get(), &pile_.problem, nullptr, nullptr, answer.get()),
              SAP_OK);
    EXPECT_EQ(sap_answer_step_id(answer.get()), i);
  }
  EXPECT_EQ(sap_session_in_flight(in_flight.get()), 3);
  EXPECT_EQ(sap_session_step(in_flight.get(), &pile_.problem, nullptr, nullptr, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_session_reset(in_flight.get(), answer.get()), SAP_INVALID_ARGUMENT);
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(sap_session_await_outcome(in_flight.get(), nullptr), 1);
    ASSERT_EQ(sap_session_take(in_flight.get(), nullptr, answer.get()), SAP_OK);
    EXPECT_EQ(sap_answer_step_id(answer.get()), i);
    EXPECT_EQ(VelocityOf(answer), expected[i - 1]);
  }
  EXPECT_EQ(sap_session_take(in_flight.get(), nullptr, answer.get()), SAP_INVALID_ARGUMENT);
}

TEST_F(CCallsTest, TheErrorOfAStepInFlightIsItsOutcome) {
  const Session session(client_);
  const Answer answer;
  const double time_step = pile_.problem.time_step;
  pile_.problem.time_step = 0;
  EXPECT_EQ(sap_session_send(session.get(), &pile_.problem, nullptr, nullptr, answer.get()),
            SAP_OK);
  pile_.problem.time_step = time_step;
  EXPECT_EQ(sap_session_send(session.get(), &pile_.problem, nullptr, nullptr, answer.get()),
            SAP_OK);
  EXPECT_EQ(sap_session_take(session.get(), nullptr, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_answer_step_id(answer.get()), 1u);
  EXPECT_STREQ(answer.error().field, "time_step");
  EXPECT_EQ(sap_session_take(session.get(), nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(VelocityOf(answer), Solved());
}

TEST_F(CCallsTest, ASessionEndsAtItsDeadlineAndWhenItIsClosed) {
  sap_call call = Call();
  const double deadline_s = 1e-9;
  call.deadline_s = &deadline_s;
  const Session late(client_, &call), closed(client_);
  const Answer answer;
  EXPECT_EQ(sap_session_step(late.get(), &pile_.problem, nullptr, nullptr, answer.get()),
            SAP_DEADLINE_EXCEEDED);
  EXPECT_EQ(sap_session_is_open(late.get()), 0);
  EXPECT_EQ(sap_session_is_open(closed.get()), 1);
  EXPECT_EQ(sap_session_close(closed.get(), nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(sap_session_is_open(closed.get()), 0);
  EXPECT_EQ(sap_session_step(closed.get(), &pile_.problem, nullptr, nullptr, answer.get()),
            SAP_UNAVAILABLE);
}

TEST_F(CCallsTest, AnswersOfABatchAreHandedOutOnceEach) {
  constexpr int kCount = 20;
  std::vector<Answer> answers(kCount);
  std::vector<sap_answer*> list;
  for (const Answer& answer : answers) list.push_back(answer.get());
  std::vector<const sap_problem*> problems(kCount, &pile_.problem);
  problems[7] = nullptr;
  std::atomic<int> news{0};
  sap_call call = Call();
  call.done = Count;
  call.context = &news;
  sap_batch* batch = nullptr;
  ASSERT_EQ(
      sap_batch_begin(client_.get(), kCount, problems.data(), nullptr, &call, list.data(), &batch),
      SAP_OK);
  std::set<int64_t> ended;
  const std::vector<double> expected = Solved();
  for (int64_t i = sap_batch_next(batch, nullptr); i != SAP_BATCH_ENDED;
       i = sap_batch_next(batch, nullptr)) {
    EXPECT_TRUE(ended.insert(i).second);
    if (i == 7) {
      EXPECT_STREQ(answers[i].error().field, "problem");
    } else {
      EXPECT_EQ(VelocityOf(answers[i]), expected);
    }
  }
  EXPECT_EQ(ended.size(), size_t{kCount});
  sap_batch_free(batch);
  EXPECT_EQ(news, kCount + 1);
}

TEST_F(CCallsTest, ABatchThatIsFreedIsCancelled) {
  constexpr int kCount = 200;
  std::vector<Answer> answers(kCount);
  std::vector<sap_answer*> list;
  for (const Answer& answer : answers) list.push_back(answer.get());
  const std::vector<const sap_problem*> problems(kCount, &pile_.problem);
  sap_batch* batch = nullptr;
  sap_batch_begin(client_.get(), kCount, problems.data(), nullptr, nullptr, list.data(), &batch);
  ASSERT_NE(batch, nullptr);
  sap_batch_free(batch);
  for (const Answer& answer : answers) {
    EXPECT_TRUE(answer.error().kind == SAP_CANCELLED || answer.solution() != nullptr);
  }
}

TEST_F(CCallsTest, WhatIsMissingIsRefused) {
  const Answer answer, other;
  sap_client* client = nullptr;
  sap_session* session = nullptr;
  sap_answer* const answers[] = {answer.get(), other.get()};
  sap_answer* const twice[] = {answer.get(), answer.get()};
  sap_answer* const none[] = {answer.get(), nullptr};
  const sap_problem* const problems[] = {&pile_.problem, &pile_.problem};
  const auto batch = [&](int64_t count, const sap_problem* const* inputs,
                         sap_answer* const* outputs) {
    return sap_solve_batch(client_.get(), count, inputs, nullptr, nullptr, outputs);
  };
  EXPECT_EQ(batch(2, nullptr, answers), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(other.error().field, "problems");
  EXPECT_EQ(batch(2, problems, twice), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "answers");
  EXPECT_EQ(batch(2, problems, none), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(batch(2, problems, nullptr), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(batch(-1, problems, answers), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(batch(0, nullptr, nullptr), SAP_OK);
  EXPECT_EQ(sap_solve(nullptr, &pile_.problem, nullptr, nullptr, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, nullptr, nullptr),
            SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_connect(nullptr, nullptr, nullptr, &client, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_session_open(nullptr, nullptr, nullptr, &session, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_differentiate_batch(client_.get(), 1, nullptr, nullptr, nullptr, answers),
            SAP_INVALID_ARGUMENT);
}

// As of an object that has ended: what would wait returns at once.
TEST_F(CCallsTest, NullHasTheAnswersOfAnObjectThatHasEnded) {
  EXPECT_EQ(sap_batch_next(nullptr, nullptr), SAP_BATCH_ENDED);
  EXPECT_EQ(sap_session_is_open(nullptr), 0);
  EXPECT_EQ(sap_session_draining(nullptr), 0);
  EXPECT_EQ(sap_session_in_flight(nullptr), 0);
  EXPECT_EQ(sap_session_await_open(nullptr, nullptr), 1);
  EXPECT_EQ(sap_session_await_outcome(nullptr, nullptr), 1);
  EXPECT_EQ(sap_session_await_room(nullptr, nullptr), 1);
  EXPECT_EQ(sap_answer_await(nullptr, nullptr), 1);
  EXPECT_EQ(sap_answer_error(nullptr)->kind, SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(sap_answer_error(nullptr)->message, "the answer is NULL");
  EXPECT_EQ(sap_answer_solution(nullptr), nullptr);
  EXPECT_EQ(sap_answer_derivatives(nullptr), nullptr);
  EXPECT_EQ(sap_answer_forecast(nullptr), nullptr);
  EXPECT_EQ(sap_answer_info(nullptr), nullptr);
  EXPECT_EQ(sap_answer_problem(nullptr), nullptr);
  EXPECT_EQ(sap_answer_record(nullptr), nullptr);
  EXPECT_EQ(sap_answer_bytes(nullptr).length, 0);
  EXPECT_EQ(sap_answer_step_id(nullptr), 0u);
  sap_stop_request(nullptr);
  sap_stop_reset(nullptr);
}

TEST_F(CCallsTest, ACallOfALaterVersionIsReadAsFarAsItIsKnown) {
  struct Later {
    sap_call call;
    const char* more;
  } later{};
  later.call.struct_size = sizeof later;
  const Answer answer;
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &later.call, answer.get()), SAP_OK);
  later.more = "";
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &later.call, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "call.struct_size");
  // One of an earlier version ends before what this one has: the bytes after it are not read.
  sap_call earlier = Call();
  earlier.struct_size = offsetof(sap_call, servers);
  earlier.servers = -17;
  EXPECT_EQ(sap_solve(client_.get(), &pile_.problem, nullptr, &earlier, answer.get()), SAP_OK);
}

TEST_F(CCallsTest, StructsOfTheLibrarySayHowMuchOfThemThereIs) {
  const Answer answer;
  sap_solve(client_.get(), &pile_.problem, nullptr, nullptr, answer.get());
  // As a caller of a later version sees the struct of this library.
  struct Later : sap_solution {
    double more;
  };
  const auto* solution = static_cast<const Later*>(answer.solution());
  EXPECT_TRUE(SAP_HAS(solution, warm_started));
  EXPECT_FALSE(SAP_HAS(solution, more));
  EXPECT_TRUE(SAP_HAS(solution->islands, cost));
  EXPECT_TRUE(SAP_HAS(sap_answer_error(answer.get()), server));
}

TEST_F(CCallsTest, TheProcessSaysWhatItIs) {
  const Answer answer;
  ASSERT_EQ(sap_info(client_.get(), nullptr, answer.get()), SAP_OK);
  const sap_server_info* info = sap_answer_info(answer.get());
  EXPECT_STREQ(info->version, sap_version());
  EXPECT_STREQ(info->instruction_set, sap_instruction_set());
  EXPECT_EQ(info->solver_threads, 2u);
  EXPECT_EQ(answer.solution(), nullptr);
  EXPECT_EQ(sap_health(client_.get(), nullptr, answer.get()), SAP_OK);
}

TEST_F(CCallsTest, TheLibraryWithoutATransportSaysSo) {
  ASSERT_EQ(sap_has_transport(), 0);
  const Answer answer;
  sap_client* client = nullptr;
  EXPECT_EQ(sap_connect("127.0.0.1:1", nullptr, nullptr, &client, answer.get()), SAP_UNIMPLEMENTED);
  EXPECT_EQ(client, nullptr);
  EXPECT_STREQ(answer.error().message,
               "address is '127.0.0.1:1'; this library knows \"embedded:\" alone; to call servers "
               "use libsap_islands_client");
  EXPECT_EQ(sap_load_problem("problem.json", answer.get()), SAP_UNIMPLEMENTED);
  EXPECT_STREQ(answer.error().message,
               "this library reads and writes no messages; use libsap_islands_client");
}

}  // namespace
}  // namespace sap::test
