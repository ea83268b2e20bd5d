// Sessions without transport: the guess of each step, and the state that a failed step leaves.
#include "server/service/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <mutex>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap {
namespace {

using test::Bits;

ServerConfig Config() {
  ServerConfig config;
  config.threads = 2;
  return config;
}

// The mixed scene without a guess: trees 7 and 8 of 2 and 3 dofs, bodies 9 and 10.
v1::ContactProblem Mixed() {
  v1::ContactProblem problem = test::MixedProblem();
  problem.mutable_trees()->clear_guess_velocity();
  problem.mutable_bodies()->clear_guess_velocity();
  return problem;
}

// Free bodies with these names that touch nothing, falling at a speed of their own.
v1::ContactProblem Falling(const std::vector<uint32_t>& names, double speed) {
  v1::ContactProblem problem;
  problem.set_time_step(0.01);
  v1::RigidBodies* bodies = problem.mutable_bodies();
  for (const uint32_t name : names) {
    bodies->add_mass(1);
    for (const double value : {0.1, 0.1, 0.1, 0.0, 0.0, 0.0}) bodies->add_inertia(value);
    for (int i = 0; i < 3; ++i) bodies->add_center_of_mass(0);
    for (int i = 0; i < 6; ++i) bodies->add_free_motion_velocity(speed + name);
    bodies->add_body_id(name);
  }
  return problem;
}

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(const ServerConfig& config = Config()) : handler_(config) {
    session_ = std::move(*handler_.NewSession());
    EXPECT_TRUE(session_->Open({}).has_value());
  }

  v1::SessionStep StepOf(const v1::ContactProblem& problem) {
    v1::SessionStep step;
    step.set_step_id(next_step_id_++);
    *step.mutable_problem() = problem;
    return step;
  }

  v1::StepOutcome Do(const v1::SessionStep& step, const CallContext& limits = {}) {
    v1::StepOutcome outcome;
    test::Step(session_.get(), step, limits, &outcome);
    EXPECT_EQ(outcome.step_id(), step.step_id());
    return outcome;
  }
  v1::StepOutcome Do(const v1::ContactProblem& problem) { return Do(StepOf(problem)); }

  // The step as a unary call with a guess.
  v1::ContactSolution Unary(v1::ContactProblem problem, const std::vector<double>& guess) {
    const int trees_size = problem.trees().free_motion_velocity_size();
    problem.mutable_trees()->mutable_guess_velocity()->Assign(guess.begin(),
                                                              guess.begin() + trees_size);
    problem.mutable_bodies()->mutable_guess_velocity()->Assign(guess.begin() + trees_size,
                                                               guess.end());
    v1::SolveRequest request;
    *request.mutable_problem() = problem;
    v1::SolveResponse response;
    EXPECT_TRUE(handler_.Solve(request, CallContext(), &response).has_value());
    return response.solution();
  }

  // Returns the velocity that a step starts from: without an iteration an island keeps it.
  std::vector<double> GuessOf(v1::ContactProblem problem) {
    v1::SessionStep step = StepOf(problem);
    step.mutable_options()->set_max_iterations(0);
    const v1::StepOutcome outcome = Do(step);
    EXPECT_TRUE(outcome.outcome().has_solution()) << outcome.outcome().failure().message();
    const auto& velocity = outcome.outcome().solution().velocity();
    return {velocity.begin(), velocity.end()};
  }

  test::BlockingHandler handler_;
  std::unique_ptr<Session> session_;
  uint64_t next_step_id_{1};
};

std::vector<double> VelocityOf(const v1::StepOutcome& outcome) {
  const auto& velocity = outcome.outcome().solution().velocity();
  return {velocity.begin(), velocity.end()};
}

TEST_F(SessionTest, TheFirstStepIsThatOfAUnaryCall) {
  const v1::StepOutcome first = Do(Mixed());
  ASSERT_TRUE(first.outcome().has_solution());
  EXPECT_FALSE(first.warm_started());
  v1::SolveRequest request;
  *request.mutable_problem() = Mixed();
  v1::SolveResponse response;
  ASSERT_TRUE(handler_.Solve(request, CallContext(), &response).has_value());
  EXPECT_EQ(Bits(first.outcome().solution()), Bits(response.solution()));
}

TEST_F(SessionTest, AStepStartsFromTheVelocitiesOfTheStepBefore) {
  const std::vector<double> before = VelocityOf(Do(Mixed()));
  v1::ContactProblem problem = Mixed();
  problem.mutable_bodies()->set_free_motion_velocity(2, -0.7);
  const v1::StepOutcome second = Do(problem);
  EXPECT_TRUE(second.warm_started());
  EXPECT_EQ(Bits(second.outcome().solution()), Bits(Unary(problem, before)));
}

// A problem that was solved already needs no iteration.
TEST_F(SessionTest, TheSameStepAgainTakesNoIteration) {
  Do(Mixed());
  const v1::StepOutcome again = Do(Mixed());
  EXPECT_EQ(again.outcome().solution().islands().iterations(0), 0u);
}

TEST_F(SessionTest, BodiesAreMatchedByNameWhereverTheyStand) {
  const std::vector<double> before = VelocityOf(Do(Mixed()));
  v1::ContactProblem swapped = Mixed();
  swapped.mutable_bodies()->set_body_id(0, 10);
  swapped.mutable_bodies()->set_body_id(1, 9);
  std::vector<double> expected = before;
  std::swap_ranges(expected.begin() + 5, expected.begin() + 11, expected.begin() + 11);
  EXPECT_EQ(GuessOf(swapped), expected);
}

TEST_F(SessionTest, ANewBodyStartsFromItsFreeMotionAndAnOldOneFromTheStepBefore) {
  const std::vector<double> before = VelocityOf(Do(Mixed()));
  v1::ContactProblem problem = Mixed();
  problem.mutable_bodies()->set_body_id(0, 77);
  std::vector<double> expected = before;
  for (int i = 0; i < 6; ++i) expected[5 + i] = problem.bodies().free_motion_velocity(i);
  EXPECT_EQ(GuessOf(problem), expected);
}

// What was gone for a step is new when it comes back.
TEST_F(SessionTest, ABodyThatComesBackStartsFromItsFreeMotion) {
  Do(Mixed());
  EXPECT_FALSE(Do(Falling({1, 2}, 0)).warm_started());
  const v1::StepOutcome back = Do(Mixed());
  EXPECT_FALSE(back.warm_started());
  ASSERT_TRUE(back.outcome().has_solution());
}

TEST_F(SessionTest, ATreeOfOtherDofsIsAnotherTree) {
  Do(Falling({7, 9}, 0.5));  // 7 was a body of six dofs
  const v1::ContactProblem problem = Mixed();
  const std::vector<double> guess = GuessOf(problem);
  EXPECT_EQ(guess[0], problem.trees().free_motion_velocity(0));
  EXPECT_EQ(guess[5], 0.5 + 9);
}

TEST_F(SessionTest, WhatHasNoNameStartsFromItsFreeMotion) {
  v1::ContactProblem nameless = Mixed();
  nameless.mutable_trees()->clear_tree_id();
  nameless.mutable_bodies()->clear_body_id();
  Do(nameless);
  EXPECT_FALSE(Do(nameless).warm_started());
}

TEST_F(SessionTest, TheGuessOfTheClientWins) {
  const std::vector<double> before = VelocityOf(Do(Mixed()));
  v1::ContactProblem problem = Mixed();
  std::vector<double> expected = before;
  for (int i = 0; i < 5; ++i) {
    problem.mutable_trees()->add_guess_velocity(0.125 * i);
    expected[i] = 0.125 * i;
  }
  EXPECT_EQ(GuessOf(problem), expected);  // of the trees; the bodies are not mentioned
  for (int i = 0; i < 12; ++i) problem.mutable_bodies()->add_guess_velocity(-i);
  v1::SessionStep step = StepOf(problem);
  step.mutable_options()->set_max_iterations(0);
  const v1::StepOutcome outcome = Do(step);
  EXPECT_FALSE(outcome.warm_started());
  EXPECT_EQ(outcome.outcome().solution().velocity(5 + 11), -11);
}

TEST_F(SessionTest, AFailedStepIsAnsweredAndLeavesTheLastVelocities) {
  const std::vector<double> before = VelocityOf(Do(Mixed()));
  v1::ContactProblem bad = Mixed();
  bad.mutable_contacts()->set_friction(2, -0.3);
  const v1::StepOutcome failed = Do(bad);
  EXPECT_FALSE(failed.warm_started());
  ASSERT_TRUE(failed.outcome().has_failure());
  EXPECT_EQ(failed.outcome().failure().code(), 3);
  EXPECT_EQ(failed.outcome().failure().field(), "contacts.friction[2]");
  EXPECT_EQ(failed.outcome().failure().message(),
            "contacts.friction[2] is -0.3; it must be finite and >= 0");
  EXPECT_EQ(GuessOf(Mixed()), before);
}

TEST_F(SessionTest, AStepWithoutProblemOrWithBadOptionsFails) {
  v1::SessionStep empty;
  empty.set_step_id(next_step_id_++);
  EXPECT_EQ(Do(empty).outcome().failure().field(), "problem");
  v1::SessionStep step = StepOf(Mixed());
  step.mutable_options()->set_relative_tolerance(2);
  EXPECT_EQ(Do(step).outcome().failure().field(), "options.relative_tolerance");
}

TEST_F(SessionTest, NumbersOfStepsMustRise) {
  const auto step_with = [&](uint64_t step_id) {
    v1::SessionStep step = StepOf(Mixed());
    step.set_step_id(step_id);
    return Do(step).outcome();
  };
  EXPECT_TRUE(step_with(0).has_solution());
  EXPECT_TRUE(step_with(5).has_solution());
  for (const uint64_t not_larger : {5u, 4u, 0u}) {
    const v1::Outcome outcome = step_with(not_larger);
    ASSERT_TRUE(outcome.has_failure());
    EXPECT_EQ(outcome.failure().field(), "step_id");
    EXPECT_THAT(outcome.failure().message(), testing::HasSubstr("must be larger than 5"));
  }
  EXPECT_TRUE(step_with(6).has_solution());
  EXPECT_TRUE(step_with(std::numeric_limits<uint64_t>::max()).has_solution());
  EXPECT_TRUE(step_with(std::numeric_limits<uint64_t>::max()).has_failure());
}

TEST_F(SessionTest, OptionsOfAStepReplaceThoseOfTheSession) {
  session_ = std::move(*handler_.NewSession());
  v1::OpenSession open;
  open.mutable_options()->set_max_iterations(0);
  ASSERT_TRUE(session_->Open(open).has_value());
  const auto status = [](const v1::StepOutcome& outcome) {
    return outcome.outcome().solution().islands().status(0);
  };
  EXPECT_EQ(status(Do(Mixed())), v1::ISLAND_STATUS_ITERATION_LIMIT);
  v1::SessionStep step = StepOf(Mixed());
  step.mutable_options()->set_newton(v1::NEWTON_METHOD_PLAIN);
  EXPECT_EQ(status(Do(step)), v1::ISLAND_STATUS_CONVERGED);
  v1::ContactProblem problem = Mixed();
  problem.mutable_bodies()->set_free_motion_velocity(2, -3);
  EXPECT_EQ(status(Do(problem)), v1::ISLAND_STATUS_ITERATION_LIMIT);
}

TEST_F(SessionTest, LowLatencyGivesTheSameBits) {
  std::vector<test::AnswerBits> bits;
  for (const bool low_latency : {false, true}) {
    session_ = std::move(*handler_.NewSession());
    v1::OpenSession open;
    open.set_low_latency(low_latency);
    ASSERT_TRUE(session_->Open(open).has_value());
    EXPECT_EQ(session_->low_latency(), low_latency);
    for (int i = 0; i < 3; ++i) bits.push_back(Bits(Do(Mixed()).outcome().solution()));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bits[i], bits[i + 3]) << i;
}

TEST_F(SessionTest, TheOperatorMayDisableLowLatency) {
  ServerConfig config = Config();
  config.idle_spinners = 0;
  test::BlockingHandler handler(config);
  const auto session = handler.NewSession();
  v1::OpenSession open;
  open.set_low_latency(true);
  ASSERT_TRUE((*session)->Open(open).has_value());
  EXPECT_FALSE((*session)->low_latency());
}

TEST_F(SessionTest, BadOptionsOfTheSessionAreRefusedAtOpen) {
  session_ = std::move(*handler_.NewSession());
  v1::OpenSession open;
  open.mutable_options()->set_relative_tolerance(-1);
  const ServiceStatus opened = session_->Open(open);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().field, "options.relative_tolerance");
}

TEST_F(SessionTest, AStepCutByItsTimeBudgetIsAnsweredAndUsedForTheNext) {
  v1::ContactProblem block;
  client::ToMessage(test::SphereBlock(10), &block);
  for (uint32_t i = 0; i < 1000; ++i) block.mutable_bodies()->add_body_id(i);
  v1::SessionStep step = StepOf(block);
  step.mutable_options()->mutable_time_budget()->set_nanos(30'000'000);
  const v1::StepOutcome cut = Do(step);
  ASSERT_TRUE(cut.outcome().has_solution());
  EXPECT_EQ(cut.outcome().solution().islands().status(0), v1::ISLAND_STATUS_DEADLINE);
  EXPECT_EQ(GuessOf(block), VelocityOf(cut));
}

// The budget of a step that waited for the one before it counts from its turn.
TEST_F(SessionTest, TheTimeBudgetCountsFromTheAnswerToTheStepBefore) {
  Do(Mixed());
  v1::SessionStep step = StepOf(Mixed());
  step.mutable_options()->mutable_time_budget()->set_seconds(50);
  CallContext limits;
  limits.arrival -= std::chrono::hours(1);
  v1::ContactProblem* problem = step.mutable_problem();
  problem->mutable_bodies()->set_free_motion_velocity(2, -3);
  EXPECT_EQ(Do(step, limits).outcome().solution().islands().status(0), v1::ISLAND_STATUS_CONVERGED);
}

TEST_F(SessionTest, AStepWhoseDeadlineHasPassedFailsAndLeavesTheLastVelocities) {
  const std::vector<double> before = VelocityOf(Do(Mixed()));
  CallContext limits;
  limits.deadline = limits.arrival;
  const v1::StepOutcome late = Do(StepOf(Mixed()), limits);
  ASSERT_TRUE(late.outcome().has_failure());
  EXPECT_EQ(late.outcome().failure().code(), 4);
  EXPECT_EQ(GuessOf(Mixed()), before);
}

// One absurd velocity must not spoil the steps after it.
TEST_F(SessionTest, AnIslandThatLeftTheRangeOfDoublesLeavesNoVelocities) {
  v1::ContactProblem absurd = Mixed();
  for (double& v : *absurd.mutable_bodies()->mutable_free_motion_velocity()) v = 1e300;
  const v1::StepOutcome outcome = Do(absurd);
  ASSERT_TRUE(outcome.outcome().has_solution());
  ASSERT_EQ(outcome.outcome().solution().islands().status(0), v1::ISLAND_STATUS_NUMERICAL_FAILURE);
  const v1::StepOutcome next = Do(Mixed());
  EXPECT_FALSE(next.warm_started());
  EXPECT_EQ(next.outcome().solution().islands().status(0), v1::ISLAND_STATUS_CONVERGED);
}

TEST_F(SessionTest, TheGaugeCountsSessionsAndTheLimitHolds) {
  ServerConfig config = Config();
  config.admission.all.max_sessions = 2;
  test::BlockingHandler handler(config);
  EXPECT_EQ(handler.num_sessions(), 0);
  auto first = handler.NewSession();
  auto second = handler.NewSession();
  EXPECT_EQ(handler.num_sessions(), 2);
  const auto third = handler.NewSession();
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(handler.num_sessions(), 2);
  first->reset();
  EXPECT_TRUE(handler.NewSession().has_value());
  second->reset();
  EXPECT_EQ(handler.num_sessions(), 0);
}

// Sessions that pause hold the factors of their last step, which may be gigabytes.
TEST(SessionKeptMemoryTest, CountsAgainstTheBytesOfItsClientUntilTheSessionEnds) {
  test::BlockingHandler handler(Config());
  auto session = std::move(*handler.NewSession());
  ASSERT_TRUE(session->Open({}).has_value());
  EXPECT_EQ(handler.admission().kept_bytes(), 0);
  v1::SessionStep step;
  client::ToMessage(test::SphereBlock(4), step.mutable_problem());
  v1::StepOutcome outcome;
  test::Step(session.get(), step, {}, &outcome);
  ASSERT_TRUE(outcome.outcome().has_solution());
  EXPECT_GT(handler.admission().kept_bytes(), 0);
  session.reset();
  EXPECT_EQ(handler.admission().kept_bytes(), 0);
}

TEST(SessionKeptMemoryTest, IsFreedAfterEachStepWhereItIsOverTheLimit) {
  ServerConfig config = Config();
  test::BlockingHandler roomy(config);
  const int64_t velocities = NamedVelocities::BytesFor(4 * 4 * 4, 6 * 4 * 4 * 4);
  config.admission.client.max_bytes = velocities + 1000;
  test::BlockingHandler narrow(config);
  auto keeps = std::move(*roomy.NewSession());
  auto frees = std::move(*narrow.NewSession());
  ASSERT_TRUE(keeps->Open({}).has_value() && frees->Open({}).has_value());
  v1::SessionStep step;
  client::ToMessage(test::SphereBlock(4), step.mutable_problem());
  for (uint64_t id = 1; id <= 3; ++id) {
    step.set_step_id(id);
    v1::StepOutcome kept, freed;
    test::Step(keeps.get(), step, {}, &kept);
    test::Step(frees.get(), step, {}, &freed);
    EXPECT_GT(roomy.admission().kept_bytes(), narrow.admission().kept_bytes());
    EXPECT_EQ(narrow.admission().kept_bytes(), velocities);
    EXPECT_EQ(freed.warm_started(), kept.warm_started());
    EXPECT_EQ(Bits(freed.outcome().solution()), Bits(kept.outcome().solution()));
  }
}

// They are the state of the session, which nothing may drop.
TEST(SessionKeptMemoryTest, AStepWhoseVelocitiesDoNotFitIsRefusedAndLeavesTheSessionAsItWas) {
  ServerConfig config = Config();
  config.admission.client.max_bytes = NamedVelocities::BytesFor(8, 48) + 1000;
  test::BlockingHandler handler(config);
  auto session = std::move(*handler.NewSession());
  ASSERT_TRUE(session->Open({}).has_value());
  const auto step = [&](uint64_t id, int count) {
    v1::SessionStep step;
    step.set_step_id(id);
    client::ToMessage(test::SphereBlock(count), step.mutable_problem());
    for (int i = 0; i < count * count * count; ++i) {
      step.mutable_problem()->mutable_bodies()->add_body_id(i);
    }
    step.mutable_problem()->mutable_bodies()->clear_guess_velocity();
    v1::StepOutcome outcome;
    test::Step(session.get(), step, {}, &outcome);
    return outcome;
  };
  ASSERT_TRUE(step(1, 2).outcome().has_solution());
  const v1::StepOutcome refused = step(2, 4);
  EXPECT_EQ(refused.outcome().failure().reason(), "CLIENT_BYTES");
  EXPECT_EQ(handler.admission().kept_bytes(), NamedVelocities::BytesFor(8, 48));
  const v1::StepOutcome next = step(3, 2);
  EXPECT_TRUE(next.warm_started());
  EXPECT_TRUE(next.outcome().has_solution());
}

// A step may be answered inline or later by the arena; its bits do not tell which.
TEST(SessionStartTest, InlineAndOnTheArenaGiveTheSameBits) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable ready;
    bool answered{false};
  };
  std::vector<std::vector<test::AnswerBits>> bits;
  for (const double inline_below_us : {1e6, 0.0}) {
    ServerConfig config = Config();
    config.inline_below_us = inline_below_us;
    test::BlockingHandler handler(config);
    const std::unique_ptr<Session> session = std::move(*handler.NewSession());
    ASSERT_TRUE(session->Open({}).has_value());
    std::vector<test::AnswerBits> steps;
    for (int i = 0; i < 3; ++i) {
      v1::SessionStep step;
      step.set_step_id(i);
      *step.mutable_problem() = Mixed();
      step.mutable_problem()->mutable_bodies()->set_free_motion_velocity(2, -0.1 * i);
      v1::StepOutcome outcome;
      Answer answer;
      const bool at_once = session->StartStep(
          step, CallContext(), &outcome,
          [](void* context) {
            auto* answer = static_cast<Answer*>(context);
            const std::lock_guard lock(answer->mutex);
            answer->answered = true;
            answer->ready.notify_all();
          },
          &answer);
      EXPECT_EQ(at_once, inline_below_us > 0);
      std::unique_lock lock(answer.mutex);
      answer.ready.wait(lock, [&] { return at_once || answer.answered; });
      steps.push_back(Bits(outcome.outcome().solution()));
    }
    bits.push_back(steps);
  }
  EXPECT_EQ(bits[0], bits[1]);
}

}  // namespace
}  // namespace sap
