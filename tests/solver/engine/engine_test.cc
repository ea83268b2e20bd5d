#include "solver/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <type_traits>
#include <vector>

#include "solver/engine/engine_session.h"
#include "tests/support/random_problem.h"

namespace sap::test::engine {
namespace {

using testing::ElementsAre;

ContactSolution Solved(Engine* engine, const ContactProblemView& view,
                       const CallLimits& call = {}) {
  ContactSolution solution;
  const EngineStatus status = engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus read = workspace.task.Read(view); !read) return read;
    return engine->Solve(&workspace, {}, call, {}, &solution);
  });
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return solution;
}

EngineError ErrorOf(Engine* engine, const ContactProblemView& view, const CallLimits& call,
                    const SolverOptions& options = {}) {
  ContactSolution solution;
  const EngineStatus status = engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus read = workspace.task.Read(view); !read) return read;
    return engine->Solve(&workspace, options, call, {}, &solution);
  });
  return status ? EngineError{} : status.error();
}

TEST(EngineTest, TheLargestOfABatchComeFirstAndEqualOnesInTheirOrder) {
  EXPECT_THAT(LargestFirst({3, 7, 3, 9, 7}), ElementsAre(3, 1, 4, 0, 2));
  EXPECT_TRUE(LargestFirst({}).empty());
}

TEST(EngineTest, EveryProblemOfABatchIsCalledOnce) {
  Engine engine(3);
  std::vector<std::atomic<int>> calls(20);
  engine.ForLargestFirst(std::vector<int64_t>(20, 1), [&](int i) { ++calls[i]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

TEST(EngineTest, ThreadsAndWhatWasSolvedBeforeChangeNoBits) {
  const ProblemArrays small = RandomTreesInContact(1);
  const ProblemArrays large = Heaps(2, 60, 4);
  Engine alone(1), several(3);
  const ContactSolution expected = Solved(&alone, large.View());
  EXPECT_EQ(Solved(&several, large.View()).velocity, expected.velocity);
  Solved(&several, small.View());
  EXPECT_EQ(Solved(&several, large.View()).velocity, expected.velocity);
}

TEST(EngineTest, AProblemThatBreaksARuleIsNamedByItsField) {
  Engine engine(1);
  ProblemArrays problem = RandomTreesInContact(1);
  problem.time_step = 0;
  const EngineError error = ErrorOf(&engine, problem.View(), {});
  EXPECT_EQ(error.code, EngineErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "time_step");
}

TEST(EngineTest, ACertificateOfRestWithoutInitialVelocitiesNamesThem) {
  Engine engine(1);
  ProblemArrays problem = RandomBodiesInContact(1, 4, 9);
  const SolverOptions options{.rest = Rest{}};
  const EngineError error = ErrorOf(&engine, problem.View(), {}, options);
  EXPECT_EQ(error.code, EngineErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "bodies.initial_velocity");
  problem.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
  problem.bodies.initial_velocity.assign(24, 0);
  problem.AddRow({0, 1}, {1.0, 1.0});
  EXPECT_EQ(ErrorOf(&engine, problem.View(), {}, options).field, "trees.initial_velocity");
}

TEST(EngineTest, ACancelledCallAndALateOneHaveNoSolution) {
  Engine engine(1);
  const ProblemArrays problem = RandomTreesInContact(1);
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(ErrorOf(&engine, problem.View(), {.cancelled = &cancelled}).code,
            EngineErrorCode::kCancelled);
  const auto now = CallLimits::Clock::now();
  EXPECT_EQ(ErrorOf(&engine, problem.View(), {.arrival = now, .deadline = now}).code,
            EngineErrorCode::kDeadlineExceeded);
}

TEST(EngineTest, AFactorizationOverTheLimitNamesTheLimit) {
  Engine engine(1);
  const ProblemArrays problem = RandomBodiesInContact(1, 40, 120);
  const EngineError error = ErrorOf(&engine, problem.View(), {}, {.max_factor_bytes = 100});
  EXPECT_EQ(error.code, EngineErrorCode::kResourceExhausted);
  EXPECT_EQ(error.reason, "SOLVE_MEMORY");
}

TEST(EngineTest, AnExceptionIsAnErrorAndTheNextProblemIsSolved) {
  Engine engine(1);
  const EngineStatus status =
      engine.Run([](Workspace&) -> EngineStatus { throw std::bad_alloc(); });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, EngineErrorCode::kResourceExhausted);
  EXPECT_EQ(status.error().message, "not enough memory for this problem");
  EXPECT_FALSE(Solved(&engine, RandomTreesInContact(1).View()).velocity.empty());
}

TEST(SolveTaskTest, AProblemIsSmallByItsPredictionUnlessItMayIterateForLong) {
  SolveTask task;
  const ProblemArrays small = RandomTreesInContact(1), large = Heaps(2, 60, 4);
  ASSERT_TRUE(task.Read(small.View()).has_value());
  EXPECT_TRUE(task.IsSmall({}));
  EXPECT_FALSE(task.IsSmall({.max_iterations = 10'000}));
  EXPECT_FALSE(task.IsSmall({}, 0));
  ASSERT_TRUE(task.Read(large.View()).has_value());
  EXPECT_FALSE(task.IsSmall({}));
}

// Scenes of which no value is checked before they are solved.
enum class LargeScene : unsigned char { kHeaps, kPile };

class LargeSceneTest : public testing::TestWithParam<LargeScene> {
 protected:
  EngineError ErrorOfScene(const SolverOptions& options = {}) {
    Engine engine(2);
    return ErrorOf(&engine, scene_.View(), {}, options);
  }

  // 2800 bodies in heaps of seven, or 729 in one pile.
  ProblemArrays scene_ =
      GetParam() == LargeScene::kHeaps ? HeapsBeforeAPile(400, 8) : BlockOfBodies(9);
};

INSTANTIATE_TEST_SUITE_P(Scenes, LargeSceneTest,
                         testing::Values(LargeScene::kHeaps, LargeScene::kPile));

TEST_P(LargeSceneTest, TheFirstFaultOfTheWholeIsNamed) {
  scene_.body_contacts.law.friction.back() = -1;
  scene_.bodies.free_motion_velocity.back() = std::numeric_limits<double>::quiet_NaN();
  scene_.bodies.mass[600] = -1;
  const auto whole = ContactProblem::Make(scene_.View());
  ASSERT_FALSE(whole.has_value());
  const EngineError error = ErrorOfScene();
  EXPECT_EQ(error.code, EngineErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, whole.error().Message());
  scene_.time_step = 0;
  EXPECT_EQ(ErrorOfScene().field, "time_step");
}

// Each array in turn too short, and with a number that no array may have.
TEST_P(LargeSceneTest, EveryFaultHasTheTextThatItHasInTheWhole) {
  if (GetParam() == LargeScene::kHeaps) scene_ = HeapsBeforeAPile(100, 8);
  SolveTask task;
  TaskArena arena(3, Sharing::kAlways);
  Solver solver(&arena);
  ContactSolution solution;
  int refused = 0;
  const auto expect_same_text = [&](std::string_view name) {
    const auto whole = ContactProblem::Make(scene_.View());
    EngineStatus status = task.Read(scene_.View());
    if (status) status = task.Solve(&solver, {.max_iterations = 1}, {}, {}, &solution);
    ASSERT_EQ(status.has_value(), whole.has_value()) << name;
    if (status) return;
    EXPECT_EQ(status.error().message, whole.error().Message());
    ++refused;
  };
  const auto spoil = [&]<typename Value>(std::string_view, const ProblemField<Value>& field,
                                         auto& array) {
    if (array.empty()) return;
    const auto kept = array;
    array.pop_back();
    expect_same_text(field.name);
    array = kept;
    if constexpr (std::is_floating_point_v<Value>) {
      array[array.size() / 3] = array[array.size() / 2] = std::numeric_limits<Value>::quiet_NaN();
    } else {
      array[array.size() / 2] = static_cast<Value>(2'000'000'000);
    }
    expect_same_text(field.name);
    array = kept;
  };
  ForEachArray(spoil, static_cast<OwnedContactProblem&>(scene_));
  EXPECT_GT(refused, 20);
}

TEST_P(LargeSceneTest, TheAnswerIsThatOfTheWhole) {
  Engine engine(2);
  SolveTask task;
  ASSERT_TRUE(task.Read(scene_.View()).has_value());
  const ContactSolution whole = sap::Solve(Checked(scene_));
  const ContactSolution solution = Solved(&engine, scene_.View());
  EXPECT_EQ(solution.velocity, whole.velocity);
  EXPECT_EQ(solution.cost, whole.cost);
  EXPECT_FALSE(task.IsSmall({}));
}

TEST_P(LargeSceneTest, ASessionGoesOnFromItsVelocities) {
  scene_.bodies.body_id.resize(scene_.bodies.mass.size());
  std::iota(scene_.bodies.body_id.rbegin(), scene_.bodies.body_id.rend(), 5U);
  EngineSession session(std::make_shared<Engine>(2));
  SolveAnswer first, second;
  ASSERT_TRUE(session.Step({scene_.View()}, {}, &first).has_value());
  EXPECT_FALSE(first.warm_started);
  ASSERT_TRUE(session.Step({scene_.View()}, {}, &second).has_value());
  EXPECT_TRUE(second.warm_started);
  ContactProblem warm = Checked(scene_);
  warm.SetGuess(first.solution.velocity);
  EXPECT_EQ(second.solution.velocity, sap::Solve(warm).velocity);
}

TEST_P(LargeSceneTest, WithoutIslandsItIsSolvedAsOne) {
  Engine engine(2);
  ContactSolution solution;
  const EngineStatus status = engine.Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus read = workspace.task.Read(scene_.View()); !read) return read;
    return engine.Solve(&workspace, {.islands = false}, {}, {}, &solution);
  });
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(solution.islands.size(), 1U);
}

TEST_P(LargeSceneTest, ItIsDifferentiatedAsAWhole) {
  SolveTask task;
  const std::vector<double> velocity(Checked(scene_).num_velocities(), 1.0);
  DerivativesRequest request;
  request.cotangents = {{.velocity = velocity}};
  ASSERT_TRUE(task.Read({scene_.View(), {}, request}, kInProcessLimits, 1).has_value());
  Solver solver(nullptr);
  ContactSolution solution;
  Derivatives derivatives;
  ASSERT_TRUE(task.Solve(&solver, {}, {}, {}, &solution, &derivatives).has_value());
  ContactSolution expected;
  const Derivatives whole =
      sap::Differentiate(Checked(scene_), {}, request.cotangents, {}, {}, &expected);
  EXPECT_EQ(derivatives.gradients[0].applied_impulse, whole.gradients[0].applied_impulse);
}

TEST_P(LargeSceneTest, ACancelledCallEndsWithItsError) {
  Engine engine(2);
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(ErrorOf(&engine, scene_.View(), {.cancelled = &cancelled}).code,
            EngineErrorCode::kCancelled);
}

TEST(SolveTaskTest, DerivativesAreCheckedWithTheirNumber) {
  SolveTask task;
  const ProblemArrays problem = RandomTreesInContact(1);
  const std::vector<double> velocity(Checked(problem).num_velocities(), 1.0);
  const std::vector<double> short_by_one(velocity.begin() + 1, velocity.end());
  DerivativesRequest request;
  request.cotangents = {{.velocity = velocity}, {.velocity = short_by_one}};
  const EngineStatus status = task.Read({problem.View(), {}, request}, kInProcessLimits, 1);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "cotangents[1].velocity");
  request.cotangents.pop_back();
  request.velocity = velocity;
  EXPECT_TRUE(task.Read({problem.View(), {}, request}, kInProcessLimits, 1).has_value());
  EXPECT_EQ(task.problem().v_guess()[0], 1.0);
}

TEST(EngineSessionTest, AStepStartsFromTheVelocitiesOfTheLastSolvedOneByName) {
  const auto engine = std::make_shared<Engine>(1);
  ProblemArrays problem = RandomTreesInContact(1);
  problem.trees.tree_id.resize(problem.trees.dofs.size());
  for (size_t i = 0; i < problem.trees.tree_id.size(); ++i) {
    problem.trees.tree_id[i] = static_cast<uint32_t>(i);
  }
  EngineSession session(engine);
  const auto step = [&](const ProblemArrays& arrays, ContactSolution* solution) {
    SolveAnswer answer;
    const EngineStatus status = session.Step({arrays.View()}, {}, &answer);
    *solution = std::move(answer.solution);
    return status.has_value() ? (answer.warm_started ? "warm" : "cold") : "failed";
  };
  ContactSolution first, failed, second, after_reset;
  EXPECT_STREQ(step(problem, &first), "cold");
  ProblemArrays bad = problem;
  bad.time_step = 0;
  EXPECT_STREQ(step(bad, &failed), "failed");
  EXPECT_STREQ(step(problem, &second), "warm");
  EXPECT_EQ(second.islands[0].iterations, 0);
  session.Reset();
  EXPECT_STREQ(step(problem, &after_reset), "cold");
  EXPECT_EQ(after_reset.velocity, first.velocity);
}

}  // namespace
}  // namespace sap::test::engine
