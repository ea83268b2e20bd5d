// The C library against the server, in one process: the same bits, the same texts of errors. What
// it is linked with is in test_library.py, forks are in fork_test.cc.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "tests/client/c/c_objects.h"
#include "tests/client/c/c_structs.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/mixed_constraints.h"
#include "tests/support/problem_set.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {
namespace {

v1::ContactProblem Load(const std::filesystem::path& path) {
  v1::ContactProblem message;
  const auto problem = client::LoadProblem(path);
  EXPECT_TRUE(problem.has_value()) << path;
  if (problem) client::ToMessage(*problem, &message);
  return message;
}

// Every kind of constraint, trees and bodies, many islands and a large one, hard numbers.
std::vector<v1::ContactProblem> Problems() {
  std::vector<v1::ContactProblem> problems;
  for (const auto& path : ConstraintProblemPaths()) problems.push_back(Load(path));
  for (const char* name :
       {"clutter_bin_8_t2p00", "drake_bin_arm_12_t1p20", "heaps_300x3_t1p50", "pile_1000_t12p00",
        "nasty_scale_nano", "nasty_no_contacts", "dog_boxes_t1p40", "nasty_separated_mixed"}) {
    problems.push_back(Load(ProblemPath(name)));
  }
  return problems;
}

AnswerBits BitsOfServer(const v1::ContactProblem& problem, const v1::SolveOptions& options = {}) {
  static BlockingHandler handler{ServerConfig()};
  v1::SolveRequest request;
  *request.mutable_problem() = problem;
  *request.mutable_options() = options;
  v1::SolveResponse response;
  const ServiceStatus status = handler.Solve(request, CallContext(), &response);
  return status ? Bits(response.solution()) : AnswerBits{status.error().message};
}

AnswerBits BitsOf(const Answer& answer) {
  const sap_solution* solution = sap_answer_solution(answer.get());
  return solution != nullptr ? Bits(MessageOf(*solution)) : AnswerBits{answer.error().message};
}

AnswerBits Solved(const Client& client, const v1::ContactProblem& problem,
                  const sap_options* options = nullptr) {
  const Answer answer;
  sap_solve(client.get(), CProblem(problem).get(), options, nullptr, answer.get());
  return BitsOf(answer);
}

TEST(CLibraryTest, SolvesToTheBitsOfTheServerForAnyNumberOfThreads) {
  for (const v1::ContactProblem& problem : Problems()) {
    const AnswerBits expected = BitsOfServer(problem);
    for (const int threads : {1, 3}) EXPECT_EQ(Solved(Client(threads), problem), expected);
  }
  // METIS still draws for the server what it drew before the library was there.
  const v1::ContactProblem pile = Load(ProblemPath("pile_1000_t12p00"));
  EXPECT_EQ(BitsOfServer(pile), Solved(Client(1), pile));
}

TEST(CLibraryTest, OptionsMeanWhatTheyMeanToTheServer) {
  v1::ContactProblem problem = Load(ProblemPath("clutter_bin_8_t2p00"));
  *problem.mutable_trees()->mutable_initial_velocity() = problem.trees().free_motion_velocity();
  *problem.mutable_bodies()->mutable_initial_velocity() = problem.bodies().free_motion_velocity();
  const Client client(1);
  const double tolerance = 1e-3, speed = 1e-5;
  const uint32_t iterations = 2, rounds = 3;
  v1::SolveOptions message;
  sap_options options{};
  options.struct_size = sizeof options;
  message.set_relative_tolerance(tolerance);
  options.relative_tolerance = &tolerance;
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  message.set_absolute_speed_tolerance(speed);
  options.absolute_speed_tolerance = &speed;
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  message.set_islands(false);
  options.one_island = 1;
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  const sap_coulomb_friction coulomb{sizeof coulomb, &rounds, &tolerance};
  message.mutable_coulomb()->set_max_rounds(rounds);
  message.mutable_coulomb()->set_tolerance(tolerance);
  options.coulomb = &coulomb;
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  const double horizon = 0.25;
  const sap_rest rest{sizeof rest, &horizon};
  message.mutable_rest()->set_horizon(horizon);
  options.rest = &rest;
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  options.coulomb = nullptr;  // else all drifts are infinite
  message.clear_coulomb();
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  message.set_max_iterations(iterations);
  options.max_iterations = &iterations;
  EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  for (const int newton : {SAP_NEWTON_PLAIN, SAP_NEWTON_GAUSS_SEIDEL}) {
    message.set_newton(static_cast<v1::NewtonMethod>(newton));
    options.newton = newton;
    EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  }
  message.clear_newton();
  options.newton = 0;
  for (const int choice : {SAP_INTERIOR_POINT_NEVER, SAP_INTERIOR_POINT_ALWAYS}) {
    message.set_interior_point(static_cast<v1::InteriorPoint>(choice));
    options.interior_point = choice;
    EXPECT_EQ(Solved(client, problem, &options), BitsOfServer(problem, message));
  }
}

TEST(CLibraryTest, FindsTheIslandsOfTheSolution) {
  const Client client(1);
  const Answer found, solved;
  const uint32_t no_iterations = 0;  // The islands are the same.
  sap_options options{};
  options.struct_size = sizeof options;
  options.max_iterations = &no_iterations;
  for (const v1::ContactProblem& message : Problems()) {
    const CProblem problem(message);
    ASSERT_EQ(sap_find_islands(client.get(), problem.get(), found.get()), SAP_OK);
    ASSERT_EQ(sap_solve(client.get(), problem.get(), &options, nullptr, solved.get()), SAP_OK);
    const sap_forecast* forecast = sap_answer_forecast(found.get());
    const sap_solution* solution = sap_answer_solution(solved.get());
    ASSERT_NE(forecast, nullptr);
    const auto list = [](const sap_int32s& array) {
      return std::vector<int32_t>(array.data, array.data + array.length);
    };
    EXPECT_EQ(list(forecast->island_of_tree), list(solution->island_of_tree));
    EXPECT_EQ(forecast->solve_time_s.length, solution->islands->cost.length);
    EXPECT_EQ(sap_answer_solution(found.get()), nullptr);
    EXPECT_EQ(sap_answer_forecast(solved.get()), nullptr);
  }
}

TEST(CLibraryTest, IslandsOfIndicesThatBreakARuleAreRefusedAsASolveIs) {
  v1::ContactProblem message = Load(ProblemPath("clutter_bin_8_t2p00"));
  message.mutable_contacts()->set_tree_a(3, 77);
  const Client client(1);
  const Answer found, solved;
  EXPECT_EQ(sap_find_islands(client.get(), CProblem(message).get(), found.get()),
            SAP_INVALID_ARGUMENT);
  sap_solve(client.get(), CProblem(message).get(), nullptr, nullptr, solved.get());
  EXPECT_STREQ(found.error().message, solved.error().message);
  EXPECT_STREQ(found.error().field, "contacts.tree_a[3]");
  EXPECT_EQ(sap_answer_forecast(found.get()), nullptr);
}

TEST(CLibraryTest, AProblemOfABatchFailsAlone) {
  std::vector<v1::ContactProblem> messages(6, Load(ProblemPath("clutter_bin_8_t2p00")));
  messages[2].set_time_step(-1);
  std::vector<std::unique_ptr<CProblem>> problems;
  std::vector<const sap_problem*> list;
  std::vector<Answer> answers(messages.size());
  std::vector<sap_answer*> answer_list;
  for (size_t i = 0; i < messages.size(); ++i) {
    messages[i].mutable_trees()->set_free_motion_velocity(0, 0.1 * static_cast<double>(i));
    problems.push_back(std::make_unique<CProblem>(messages[i]));
    list.push_back(problems.back()->get());
    answer_list.push_back(answers[i].get());
  }
  const Client client(2);
  EXPECT_EQ(sap_solve_batch(client.get(), 6, list.data(), nullptr, nullptr, answer_list.data()),
            SAP_OK);
  for (size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(BitsOf(answers[i]), BitsOfServer(messages[i]));
  EXPECT_STREQ(answers[2].error().field, "time_step");
}

TEST(CLibraryTest, ASessionStartsFromTheVelocitiesOfTheStepBeforeAsTheServersDoes) {
  v1::ContactProblem problem = Load(ProblemPath("clutter_bin_40_t1p00"));
  problem.mutable_trees()->clear_guess_velocity();
  problem.mutable_trees()->clear_tree_id();
  for (int i = 0; i < problem.trees().dofs_size(); ++i) problem.mutable_trees()->add_tree_id(7 + i);
  BlockingHandler handler{ServerConfig()};
  const auto remote = *handler.NewSession(nullptr);
  ASSERT_TRUE(remote->Open({}).has_value());
  const Client client(2);
  const Session session(client);
  const Answer answer;
  for (uint64_t step = 1; step <= 4; ++step) {
    // One tree is new in each step, and one moves differently.
    problem.mutable_trees()->set_tree_id(3, static_cast<uint32_t>(1000 + step));
    problem.mutable_trees()->set_free_motion_velocity(0, 0.1 * static_cast<double>(step));
    v1::SessionStep message;
    message.set_step_id(step);
    *message.mutable_problem() = problem;
    v1::StepOutcome outcome;
    Step(remote.get(), message, CallContext(), &outcome);
    sap_session_step(session.get(), CProblem(problem).get(), nullptr, nullptr, answer.get());
    EXPECT_EQ(BitsOf(answer), Bits(outcome.outcome().solution())) << step;
    EXPECT_EQ(sap_answer_solution(answer.get())->warm_started, outcome.warm_started());
  }
  const AnswerBits cold = BitsOfServer(problem);
  EXPECT_NE(BitsOf(answer), cold);
  sap_session_reset(session.get(), answer.get());
  sap_session_step(session.get(), CProblem(problem).get(), nullptr, nullptr, answer.get());
  EXPECT_EQ(BitsOf(answer), cold);
}

TEST(CLibraryTest, AFailedStepLeavesTheSessionAsItWas) {
  v1::ContactProblem problem = Load(ProblemPath("clutter_bin_8_t2p00"));
  problem.mutable_trees()->clear_guess_velocity();
  v1::ContactProblem bad = problem;
  bad.set_time_step(0);
  const Client client(1);
  const Session with_failure(client), without(client);
  const Answer one, other;
  for (const v1::ContactProblem* step : {&problem, &bad, &problem}) {
    sap_session_step(with_failure.get(), CProblem(*step).get(), nullptr, nullptr, one.get());
    if (step == &bad) continue;
    sap_session_step(without.get(), CProblem(*step).get(), nullptr, nullptr, other.get());
    EXPECT_EQ(BitsOf(one), BitsOf(other));
  }
}

// Cotangents and directions of everything, all inputs wanted.
v1::DifferentiateRequest Everything() {
  v1::DifferentiateRequest request;
  client::ToMessage(EveryConstraint(), request.mutable_problem());
  for (int k = 0; k < 2; ++k) {
    v1::Cotangent* cotangent = request.add_cotangents();
    const int velocities = request.problem().trees().free_motion_velocity_size() +
                           request.problem().bodies().free_motion_velocity_size();
    for (int i = 0; i < velocities; ++i) cotangent->add_velocity(0.5 + 0.25 * (i + k));
    cotangent->set_cost(k);
  }
  v1::ContactProblem* direction = request.add_tangents();
  direction->set_time_step(1);
  direction->mutable_regularization()->set_sigma(0.5);
  for (const double mass : request.problem().bodies().mass()) {
    direction->mutable_bodies()->add_mass(0.1 * mass);
  }
  return request;
}

std::string DerivativesOfServer(const v1::DifferentiateRequest& request) {
  BlockingHandler handler{ServerConfig()};
  v1::DifferentiateResponse response;
  const ServiceStatus status = handler.Differentiate(request, CallContext(), &response);
  if (!status) return status.error().message;
  const std::string solution = Bits(response.solution()).bytes;
  response.clear_solution();
  return solution + response.SerializeAsString();
}

std::string DerivativesOf(const Answer& answer) {
  const sap_derivatives* derivatives = sap_answer_derivatives(answer.get());
  if (derivatives == nullptr) return answer.error().message;
  return BitsOf(answer).bytes + MessageOf(*derivatives).SerializeAsString();
}

std::string Differentiated(const v1::DifferentiateRequest& request) {
  const Answer answer;
  const Client client(2);
  sap_differentiate(client.get(), CDifferentiation(request).get(), nullptr, answer.get());
  return DerivativesOf(answer);
}

TEST(CLibraryTest, DerivativesHaveTheBitsOfTheServer) {
  v1::DifferentiateRequest request = Everything();
  EXPECT_EQ(Differentiated(request), DerivativesOfServer(request));
  request.set_hold_delassus(true);
  EXPECT_EQ(Differentiated(request), DerivativesOfServer(request));
  for (const char* path : {"trees", "contacts.jacobian", "time_step", "regularization.sigma",
                           "body_contacts", "rows", "trees.dynamics_matrix", "contacts"}) {
    request.mutable_wanted()->add_paths(path);
    EXPECT_EQ(Differentiated(request), DerivativesOfServer(request)) << path;
  }
}

TEST(CLibraryTest, ABatchOfDerivativesHasTheBitsOfEachAlone) {
  v1::DifferentiateRequest request = Everything(), bad = Everything();
  bad.mutable_cotangents(1)->mutable_velocity()->RemoveLast();
  const CDifferentiation good_structs(request), bad_structs(bad);
  const std::vector<const sap_differentiation*> list{good_structs.get(), bad_structs.get(),
                                                     good_structs.get()};
  const Client client(2);
  const Answer a, b, c;
  const std::vector<sap_answer*> answers{a.get(), b.get(), c.get()};
  EXPECT_EQ(sap_differentiate_batch(client.get(), 3, list.data(), nullptr, nullptr, answers.data()),
            SAP_OK);
  EXPECT_EQ(DerivativesOf(a), DerivativesOfServer(request));
  EXPECT_EQ(DerivativesOf(c), DerivativesOfServer(request));
  EXPECT_STREQ(b.error().field, "cotangents[1].velocity");
  EXPECT_EQ(b.error().message, DerivativesOfServer(bad));
}

struct BadProblem {
  const char* field;
  void (*spoil)(v1::ContactProblem* problem);
};

TEST(CLibraryTest, ErrorsNameTheFieldInTheWordsOfTheServer) {
  const BadProblem cases[] = {
      {"time_step", [](auto* problem) { problem->set_time_step(0); }},
      {"trees.dynamics_matrix[2]",
       [](auto* problem) { problem->mutable_trees()->set_dynamics_matrix(1, 100); }},
      {"bodies.mass[0]", [](auto* problem) { problem->mutable_bodies()->set_mass(0, -1); }},
      {"bodies.inertia",
       [](auto* problem) { problem->mutable_bodies()->mutable_inertia()->RemoveLast(); }},
      {"contacts.friction[0]",
       [](auto* problem) { problem->mutable_contacts()->set_friction(0, -0.3); }},
      {"body_contacts.body_b[0]",
       [](auto* problem) { problem->mutable_body_contacts()->set_body_b(0, 99); }},
      {"rows.entries[0]", [](auto* problem) { problem->mutable_rows()->set_entries(0, 0); }},
      {"regularization.sigma",
       [](auto* problem) {
         problem->mutable_regularization()->set_sigma(std::numeric_limits<double>::infinity());
       }},
      {"regularization.rule",
       [](auto* problem) {
         problem->mutable_regularization()->set_rule(static_cast<v1::RegularizationRule>(9));
       }},
  };
  const Client client(1);
  for (const BadProblem& bad : cases) {
    v1::ContactProblem problem = MixedProblem();
    AddRows(&problem);
    bad.spoil(&problem);
    const Answer answer;
    EXPECT_EQ(sap_solve(client.get(), CProblem(problem).get(), nullptr, nullptr, answer.get()),
              SAP_INVALID_ARGUMENT);
    EXPECT_EQ(BitsOf(answer), BitsOfServer(problem));
    EXPECT_STREQ(answer.error().field, bad.field);
    EXPECT_EQ(sap_answer_solution(answer.get()), nullptr);
  }
}

TEST(CLibraryTest, OptionsOutOfRangeAreErrors) {
  const Client client(1);
  const v1::ContactProblem problem = MixedProblem();
  const double negative = -1;
  const auto field = [&](auto set) {
    sap_options options{};
    options.struct_size = sizeof options;
    set(&options);
    const Answer answer;
    sap_solve(client.get(), CProblem(problem).get(), &options, nullptr, answer.get());
    return std::string(answer.error().field);
  };
  EXPECT_EQ(field([&](auto* o) { o->relative_tolerance = &negative; }),
            "options.relative_tolerance");
  EXPECT_EQ(field([&](auto* o) { o->absolute_speed_tolerance = &negative; }),
            "options.absolute_speed_tolerance");
  EXPECT_EQ(field([&](auto* o) { o->time_budget_s = &negative; }), "options.time_budget");
  EXPECT_EQ(field([](auto* o) { o->newton = 17; }), "options.newton");
  EXPECT_EQ(field([](auto* o) { o->interior_point = 17; }), "options.interior_point");
  EXPECT_EQ(field([](auto* o) { o->struct_size = 0; }), "options.struct_size");
  EXPECT_EQ(field([](auto*) {}), "");
}

TEST(CLibraryTest, AStructMayBeShorterOrLongerThanTheLibraryKnows) {
  const Client client(1);
  const v1::ContactProblem message = MixedProblem();
  CProblem problem(message);
  struct Longer {
    sap_bodies bodies;
    sap_doubles later;
  } longer{};
  longer.bodies = problem.bodies;
  longer.bodies.struct_size = sizeof longer;
  problem.problem.bodies = &longer.bodies;
  problem.regularization.struct_size = offsetof(sap_regularization, rule);
  const Answer answer;
  EXPECT_EQ(sap_solve(client.get(), problem.get(), nullptr, nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(BitsOf(answer), BitsOfServer(message));
  longer.later.length = 1;
  EXPECT_EQ(sap_solve(client.get(), problem.get(), nullptr, nullptr, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "bodies.struct_size");
  EXPECT_EQ(sap_solve(client.get(), nullptr, nullptr, nullptr, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "problem");
}

TEST(CLibraryTest, AStructThatEndsWithinAFieldIsRefused) {
  const Client client(1);
  const v1::ContactProblem message = MixedProblem();
  const auto field = [&](const auto& change) {
    CProblem problem(message);
    sap_options options{};
    options.struct_size = sizeof options;
    change(&problem, &options);
    const Answer answer;
    EXPECT_EQ(sap_solve(client.get(), problem.get(), &options, nullptr, answer.get()),
              SAP_INVALID_ARGUMENT);
    return std::string(answer.error().field);
  };
  constexpr size_t kPointer = sizeof(void*);
  EXPECT_EQ(field([](CProblem* problem, auto*) {
              problem->bodies.struct_size = offsetof(sap_bodies, inertia) + kPointer;
            }),
            "bodies.inertia");
  EXPECT_EQ(field([](CProblem* problem, auto*) {
              problem->laws.struct_size = offsetof(sap_contact_laws, adhesion) + kPointer;
            }),
            "contacts.adhesion");
  EXPECT_EQ(field([](CProblem* problem, auto*) {
              problem->bodies.struct_size = offsetof(sap_bodies, inertia) + 1;
            }),
            "bodies.struct_size");
  EXPECT_EQ(field([](auto*, sap_options* options) {
              options->struct_size = offsetof(sap_options, max_iterations) + kPointer / 2;
            }),
            "options.struct_size");
}

TEST(CLibraryTest, AnArrayWithoutDataIsAnError) {
  const Client client(1);
  const v1::ContactProblem message = MixedProblem();
  CProblem problem(message);
  problem.laws.friction.data = nullptr;
  const Answer answer;
  sap_solve(client.get(), problem.get(), nullptr, nullptr, answer.get());
  EXPECT_STREQ(answer.error().field, "contacts.friction");
}

TEST(CLibraryTest, AStopEndsCallsWithCancelled) {
  const Client client(2);
  const v1::ContactProblem message = MixedProblem();
  const CProblem problem(message);
  const Answer answer;
  sap_stop* stop = sap_stop_new();
  sap_call call{};
  call.struct_size = sizeof call;
  call.stop = stop;
  sap_stop_request(stop);
  EXPECT_EQ(sap_solve(client.get(), problem.get(), nullptr, &call, answer.get()), SAP_CANCELLED);
  EXPECT_EQ(sap_answer_solution(answer.get()), nullptr);
  const sap_problem* list[] = {problem.get()};
  sap_answer* answers[] = {answer.get()};
  EXPECT_EQ(sap_solve_batch(client.get(), 1, list, nullptr, &call, answers), SAP_CANCELLED);
  sap_stop_reset(stop);
  EXPECT_EQ(sap_solve(client.get(), problem.get(), nullptr, &call, answer.get()), SAP_OK);
  sap_stop_free(stop);
}

TEST(CLibraryTest, ATimeBudgetReturnsTheBestIterate) {
  const Client client(1);
  const v1::ContactProblem message = Load(ProblemPath("pile_1000_t12p00"));
  const double budget_s = 1e-9;
  sap_options options{};
  options.struct_size = sizeof options;
  options.time_budget_s = &budget_s;
  const Answer answer;
  EXPECT_EQ(sap_solve(client.get(), CProblem(message).get(), &options, nullptr, answer.get()),
            SAP_OK);
  const sap_island_reports& islands = *sap_answer_solution(answer.get())->islands;
  EXPECT_EQ(islands.status.data[0], SAP_ISLAND_DEADLINE);
  EXPECT_GT(islands.optimality_gap_bound.data[0], 0);
}

TEST(CLibraryTest, ALimitOfMemoryIsAnError) {
  const Client client(1);
  const v1::ContactProblem message = Load(ProblemPath("pile_1000_t12p00"));
  sap_options options{};
  options.struct_size = sizeof options;
  options.max_memory_bytes = 1000;
  const Answer answer;
  EXPECT_EQ(sap_solve(client.get(), CProblem(message).get(), &options, nullptr, answer.get()),
            SAP_RESOURCE_EXHAUSTED);
  EXPECT_STREQ(answer.error().reason, "SOLVE_MEMORY");
}

TEST(CLibraryTest, ThreadsShareASolver) {
  const Client client(2);
  const v1::ContactProblem small = Load(ProblemPath("clutter_bin_8_t2p00"));
  const v1::ContactProblem large = Load(ProblemPath("heaps_300x3_t1p50"));
  const AnswerBits of_small = BitsOfServer(small), of_large = BitsOfServer(large);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(Solved(client, small), of_small);
        EXPECT_EQ(Solved(client, large), of_large);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CLibraryTest, ASessionOutlivesItsClient) {
  auto client = std::make_unique<Client>(2);
  const Session session(*client);
  client.reset();
  const v1::ContactProblem problem = MixedProblem();
  const Answer answer;
  EXPECT_EQ(
      sap_session_step(session.get(), CProblem(problem).get(), nullptr, nullptr, answer.get()),
      SAP_OK);
  EXPECT_EQ(BitsOf(answer), BitsOfServer(problem));
}

TEST(CLibraryTest, NumbersOfThreadsOutOfRangeMakeNoClient) {
  for (const int threads : {-1, 1'000'000}) {
    sap_connect_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    sap_client* client = nullptr;
    const Answer answer;
    EXPECT_EQ(sap_connect("embedded:", &options, nullptr, &client, answer.get()),
              SAP_INVALID_ARGUMENT);
    EXPECT_STREQ(answer.error().field, "threads");
    EXPECT_EQ(client, nullptr);
  }
}

}  // namespace
}  // namespace sap::test
