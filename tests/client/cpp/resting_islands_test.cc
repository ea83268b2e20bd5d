#include "client/cpp/resting_islands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "client/cpp/problem.h"
#include "client/cpp/solution.h"

namespace sap::client::resting_islands_test {
namespace {

constexpr double kStep = 0.01;
constexpr int kHorizonSteps = 4;
constexpr double kTolerance = 1e-4;
constexpr double kRests = 0.5e-4;
constexpr double kMoves = 2e-4;

RestingIslands Make() {
  return *RestingIslands::Make(
      {.horizon = kHorizonSteps * kStep, .tolerance = kTolerance, .time_step = kStep});
}

// An island of an answer: its bodies, and how far they may move within the horizon.
struct Certified {
  std::vector<uint32_t> bodies;
  double drift;
};

// A problem of some bodies with its answer, in which every body has a velocity of its own.
struct Step {
  Problem problem;
  Solution solution;

  void Add(uint32_t id, int island, double speed) {
    problem.bodies.body_id.push_back(id);
    problem.bodies.mass.push_back(1);
    solution.island_of_tree.push_back(island);
    for (int i = 0; i < 6; ++i) solution.velocity.push_back(speed * id + i);
  }
};

Step Answered(double time_step, const std::vector<Certified>& islands, double speed = 1e-3) {
  Step step;
  step.problem.time_step = time_step;
  for (size_t i = 0; i < islands.size(); ++i) {
    step.solution.islands.push_back({.rest_drift = islands[i].drift});
    for (const uint32_t id : islands[i].bodies) step.Add(id, static_cast<int>(i), speed);
  }
  return step;
}

using Ids = std::vector<uint32_t>;

Ids IdsOf(const std::vector<BodyMove>& moves) {
  Ids ids;
  for (const BodyMove& move : moves) ids.push_back(move.body_id);
  return ids;
}

// Who rests from now on.
Ids Take(RestingIslands* resting, const Step& step) {
  const auto taken = resting->TakeStep(ViewOf(step.problem), step.solution);
  EXPECT_TRUE(taken.has_value()) << taken.error().message;
  return taken ? IdsOf(*taken) : Ids{};
}

Ids Take(RestingIslands* resting, const std::vector<Certified>& islands, double speed = 1e-3) {
  return Take(resting, Answered(kStep, islands, speed));
}

LongSteps TakeLong(RestingIslands* resting, const std::vector<Certified>& islands, double speed) {
  const Step step = Answered(resting->horizon(), islands, speed);
  const auto taken = resting->TakeLongSteps(ViewOf(step.problem), step.solution);
  EXPECT_TRUE(taken.has_value()) << taken.error().message;
  return taken.value_or(LongSteps{});
}

std::array<double, 6> VelocityOf(uint32_t id, double speed) {
  std::array<double, 6> velocity;
  for (int i = 0; i < 6; ++i) velocity[i] = speed * id + i;
  return velocity;
}

void ExpectMoves(const std::vector<BodyMove>& moves, const Ids& ids, double duration,
                 double speed) {
  EXPECT_EQ(IdsOf(moves), ids);
  for (const BodyMove& move : moves) {
    EXPECT_NEAR(move.duration, duration, 1e-15);
    EXPECT_EQ(move.velocity, VelocityOf(move.body_id, speed));
  }
}

TEST(RestingIslandsTest, AnIslandWithinTheToleranceRestsAndOthersDoNot) {
  RestingIslands resting = Make();
  EXPECT_EQ(Take(&resting, {{{7, 3}, kRests}, {{4}, kMoves}, {{5}, kTolerance}}), (Ids{7, 3, 5}));
  EXPECT_EQ(resting.resting_bodies(), 3);
  EXPECT_TRUE(resting.Rests(3));
  EXPECT_EQ(resting.IslandOf(7), resting.IslandOf(3));
  EXPECT_NE(resting.IslandOf(7), resting.IslandOf(5));
  EXPECT_FALSE(resting.Rests(4));
  EXPECT_FALSE(resting.Rests(99));
}

TEST(RestingIslandsTest, WithoutABoundNothingRests) {
  RestingIslands resting = Make();
  Step step = Answered(kStep, {{{1}, std::numeric_limits<double>::infinity()}});
  step.Add(2, -1, 0);  // nothing touches it
  EXPECT_EQ(Take(&resting, step), Ids{});
}

// A tree of two dofs in the first island.
TEST(RestingIslandsTest, AnIslandWithATreeNeverRests) {
  RestingIslands resting = Make();
  Step step = Answered(kStep, {{{1}, kRests}, {{2}, kRests}});
  step.problem.trees.dofs = {2};
  step.solution.island_of_tree.insert(step.solution.island_of_tree.begin(), 0);
  step.solution.velocity.insert(step.solution.velocity.begin(), {8, 9});
  EXPECT_EQ(Take(&resting, step), Ids{2});
  const Ids second{2};
  ExpectMoves(resting.Wake(second, WakeReason::kInput), {2}, 0, 1e-3);
}

TEST(RestingIslandsTest, AtTheEndOfItsHorizonAnIslandIsDueWithTheVelocityItKept) {
  RestingIslands resting = Make();
  Take(&resting, {{{1, 2}, kRests}});
  for (int i = 0; i < kHorizonSteps; ++i) {
    EXPECT_TRUE(resting.Due().empty()) << i;
    Take(&resting, std::vector<Certified>{});
  }
  ExpectMoves(resting.Due(), {1, 2}, 0, 1e-3);
}

// Rests the bodies 1 and 2, and passes the horizon.
RestingIslands AtTheEndOfTheHorizon() {
  RestingIslands resting = Make();
  Take(&resting, {{{1, 2}, kRests}});
  for (int i = 0; i < kHorizonSteps; ++i) Take(&resting, std::vector<Certified>{});
  return resting;
}

TEST(RestingIslandsTest, ALongStepWithinTheToleranceMovesByTheHorizonAndRestsOn) {
  RestingIslands resting = AtTheEndOfTheHorizon();
  const LongSteps steps = TakeLong(&resting, {{{1, 2}, kRests}}, 2e-3);
  ExpectMoves(steps.resting, {1, 2}, kHorizonSteps * kStep, 2e-3);
  EXPECT_TRUE(steps.woken.empty());
  EXPECT_TRUE(resting.Due().empty());
  for (int i = 0; i < kHorizonSteps; ++i) Take(&resting, std::vector<Certified>{});
  ExpectMoves(resting.Due(), {1, 2}, 0, 2e-3);
  EXPECT_EQ(resting.counts().long_steps, 1);
  EXPECT_EQ(resting.counts().long_steps_refused, 0);
}

TEST(RestingIslandsTest, ARefusedLongStepWakesWhereTheyAreWithTheVelocityTheyKept) {
  RestingIslands resting = AtTheEndOfTheHorizon();
  const LongSteps steps = TakeLong(&resting, {{{1, 2}, kMoves}}, 2e-3);
  ExpectMoves(steps.woken, {1, 2}, 0, 1e-3);
  EXPECT_TRUE(steps.resting.empty());
  EXPECT_EQ(resting.resting_bodies(), 0);
  EXPECT_EQ(resting.counts().long_steps_refused, 1);
}

TEST(RestingIslandsTest, AfterARefusedLongStepTheyStayAwakeForAHorizon) {
  RestingIslands resting = AtTheEndOfTheHorizon();
  TakeLong(&resting, {{{1, 2}, kMoves}}, 2e-3);
  for (int i = 1; i < kHorizonSteps; ++i) {
    // Body 3, which it touches now, has to wait for it; body 4 has not.
    EXPECT_EQ(Take(&resting, {{{1, 2, 3}, kRests}, {{static_cast<uint32_t>(3 + i)}, kRests}}),
              Ids{static_cast<uint32_t>(3 + i)});
  }
  EXPECT_EQ(Take(&resting, {{{1, 2, 3}, kRests}}), (Ids{1, 2, 3}));
}

// Two bodies rested in one island; now nothing touches the second.
TEST(RestingIslandsTest, ALongStepIsJudgedByTheIslandsOfItsAnswer) {
  RestingIslands resting = AtTheEndOfTheHorizon();
  Step step = Answered(resting.horizon(), {{{1}, kRests}});
  step.Add(2, -1, 5);
  const auto steps = resting.TakeLongSteps(ViewOf(step.problem), step.solution);
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(IdsOf(steps->resting), Ids{1});
  ExpectMoves(steps->woken, {2}, 0, 1e-3);
  EXPECT_TRUE(resting.Rests(1));
  EXPECT_FALSE(resting.Rests(2));
}

TEST(RestingIslandsTest, WokenAfterAShortStepBodiesStayWhereTheyAre) {
  RestingIslands resting = Make();
  Take(&resting, {{{1, 2}, kRests}, {{3}, kRests}});
  Take(&resting, std::vector<Certified>{});
  const Ids touched{2, 2, 99};
  ExpectMoves(resting.Wake(touched, WakeReason::kPair), {1, 2}, 0, 1e-3);
  EXPECT_TRUE(resting.Rests(3));
  EXPECT_FALSE(resting.Rests(1));
  EXPECT_EQ(resting.counts().woken_by_pair, 1);
  EXPECT_EQ(resting.counts().woken_by_input, 0);
  EXPECT_TRUE(resting.Wake(touched, WakeReason::kPair).empty());
  // An input does not keep it awake longer than it moves.
  EXPECT_EQ(Take(&resting, {{{1, 2}, kRests}}), (Ids{1, 2}));
}

TEST(RestingIslandsTest, WokenAfterALongStepBodiesAreMovedByWhatHasPassedOfTheHorizon) {
  RestingIslands resting = AtTheEndOfTheHorizon();
  TakeLong(&resting, {{{1, 2}, kRests}}, 2e-3);
  for (int i = 0; i < 3; ++i) Take(&resting, std::vector<Certified>{});
  const Ids pushed{1};
  ExpectMoves(resting.Wake(pushed, WakeReason::kInput), {1, 2}, 3 * kStep, 2e-3);
  EXPECT_EQ(resting.counts().woken_by_input, 1);
}

TEST(RestingIslandsTest, AnotherTimeStepWakesAll) {
  RestingIslands resting = Make();
  Take(&resting, {{{1, 2}, kRests}, {{3}, kRests}});
  const auto woken = resting.SetTimeStep(kStep / 2);
  ASSERT_TRUE(woken.has_value());
  EXPECT_EQ(IdsOf(*woken), (Ids{1, 2, 3}));
  EXPECT_EQ(resting.resting_bodies(), 0);
  EXPECT_EQ(resting.counts().woken_by_input, 2);
  EXPECT_EQ(resting.horizon(), kHorizonSteps * kStep);
  EXPECT_EQ(resting.time_step(), kStep / 2);
  EXPECT_FALSE(resting.SetTimeStep(0).has_value());
}

// Ten islands of two bodies that come to rest in one step: in no step of the horizon, nor later,
// are more due than their share.
TEST(RestingIslandsTest, DueDatesAreSpreadForwardOverTheHorizon) {
  RestingIslands resting = Make();
  std::vector<Certified> islands;
  for (uint32_t i = 0; i < 10; ++i) islands.push_back({{2 * i, 2 * i + 1}, kRests});
  Take(&resting, islands);
  std::map<uint32_t, int> long_steps;
  for (int i = 1; i <= 5 * kHorizonSteps; ++i) {
    const std::vector<BodyMove> due = resting.Due();
    EXPECT_LE(due.size(), 6u) << i;
    EXPECT_GE(due.size(), i == 1 ? 0u : 4u) << i;
    std::vector<Certified> alone;
    for (size_t k = 0; k < due.size(); k += 2) {
      alone.push_back({{due[k].body_id, due[k + 1].body_id}, kRests});
      ++long_steps[due[k].body_id];
    }
    if (!due.empty()) {
      for (const BodyMove& move : TakeLong(&resting, alone, 1e-3).resting) {
        // The first move is over the part of the horizon that has passed.
        const int passed = long_steps[move.body_id / 2 * 2] == 1 ? i - 1 : kHorizonSteps;
        EXPECT_NEAR(move.duration, passed * kStep, 1e-15);
      }
    }
    Take(&resting, std::vector<Certified>{});
  }
  EXPECT_EQ(long_steps.size(), 10u);
}

TEST(RestingIslandsTest, RulesThatMakeNoSenseAreRefusedByName) {
  const auto field = [](const RestRules& rules) {
    const auto made = RestingIslands::Make(rules);
    return made ? "" : made.error().field;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(field({.horizon = bad}), "horizon");
    EXPECT_EQ(field({.tolerance = bad}), "tolerance");
    EXPECT_EQ(field({.time_step = bad}), "time_step");
  }
  EXPECT_EQ(field({.horizon = 1, .time_step = 1e-5}), "horizon");
  EXPECT_EQ(RestingIslands::Make({.horizon = 0.013, .time_step = 0.01})->horizon(), 0.01);
  EXPECT_EQ(RestingIslands::Make({.horizon = 0.001, .time_step = 0.01})->horizon(), 0.01);
}

// Each mistake is named, and changes nothing.
TEST(RestingIslandsTest, AnAnswerThatDoesNotFitIsRefusedByName) {
  RestingIslands resting = AtTheEndOfTheHorizon();
  const auto refusal = [&](const Step& step, bool is_long = false) {
    const ContactProblemView view = ViewOf(step.problem);
    if (is_long) {
      const auto taken = resting.TakeLongSteps(view, step.solution);
      return taken ? Error{} : taken.error();
    }
    const auto taken = resting.TakeStep(view, step.solution);
    return taken ? Error{} : taken.error();
  };
  const double horizon = resting.horizon();
  EXPECT_EQ(refusal(Answered(2 * kStep, {{{3}, kRests}})).field, "time_step");
  EXPECT_EQ(refusal(Answered(kStep, {{{1, 2}, kRests}}), true).field, "time_step");
  EXPECT_EQ(refusal(Answered(kStep, {{{3}, -1}})).field, "islands.rest_drift");
  EXPECT_EQ(refusal(Answered(kStep, {{{3, 1}, kRests}})).message,
            "bodies.body_id[1] is 1, which rests: it has to wake first");
  EXPECT_EQ(refusal(Answered(kStep, {{{3}, kRests}})).code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(refusal(Answered(horizon, {{{1, 2, 3}, kRests}}), true).message,
            "bodies.body_id[2] is 3, which is not due");
  EXPECT_EQ(refusal(Answered(horizon, {{{1}, kRests}}), true).message,
            "bodies.body_id has 1 bodies of an island of 2");
  Step step = Answered(kStep, {{{3}, kRests}});
  step.solution.velocity.pop_back();
  EXPECT_EQ(refusal(step).message, "velocity has 5 values; 6 are needed");
  step = Answered(kStep, {{{3}, kRests}});
  step.problem.bodies.body_id.clear();
  EXPECT_EQ(refusal(step).field, "bodies.body_id");
  step = Answered(kStep, {{{3}, kRests}});
  step.solution.island_of_tree = {1};
  EXPECT_EQ(refusal(step).field, "island_of_tree[0]");
  step.solution.island_of_tree = {};
  EXPECT_EQ(refusal(step).field, "island_of_tree");
  EXPECT_EQ(IdsOf(resting.Due()), (Ids{1, 2}));
}

}  // namespace
}  // namespace sap::client::resting_islands_test
