// Islands that problems of a batch have in common are solved once, and change no bit of an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "solver/engine/engine.h"
#include "solver/split/shared_islands.h"
#include "tests/support/random_islands.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"

namespace sap::test::batch_sharing {
namespace {

struct Outcome {
  ContactSolution solution;
  std::string error;
};

Outcome SolveIn(Engine* engine, const ContactProblemView& view, const SolverOptions& options,
                SharedIslands* shared, const CallLimits& call = {}) {
  Outcome outcome;
  const EngineStatus status =
      engine->Answer({.problem = view, .settings = {.solver = options}, .shared = shared}, call,
                     [&](const SolveTask&, SolveAnswer& answer) {
                       outcome.solution = std::move(answer.solution);
                     });
  if (!status) outcome.error = status.error().message;
  return outcome;
}

void ExpectSameAnswer(const ContactSolution& a, const ContactSolution& b) {
  ExpectSameBits(a, b);
  EXPECT_EQ(a.island_of_tree, b.island_of_tree);
  ASSERT_EQ(a.islands.size(), b.islands.size());
  for (size_t i = 0; i < a.islands.size(); ++i) {
    IslandReport x = a.islands[i], y = b.islands[i];
    EXPECT_EQ(x.status, y.status);
    EXPECT_EQ(x.swept, y.swept);
    EXPECT_EQ(x.factorizations, y.factorizations);
    EXPECT_EQ(x.cost, y.cost);
    EXPECT_EQ(x.coulomb_rounds, y.coulomb_rounds);
    EXPECT_EQ(x.coulomb_defect, y.coulomb_defect);
    EXPECT_EQ(x.rest_drift, y.rest_drift);
    EXPECT_EQ(x.sag, y.sag);
    EXPECT_EQ(x.creep, y.creep);
    EXPECT_EQ(x.dofs, y.dofs);
    EXPECT_EQ(x.contacts, y.contacts);
    EXPECT_EQ(x.rows, y.rows);
  }
}

void MoveLastBit(double* number) {
  *number = std::bit_cast<double>(std::bit_cast<uint64_t>(*number) ^ 1);
}

void AddVelocities(OwnedContactProblem* scene) {
  scene->trees.initial_velocity = scene->trees.free_motion_velocity;
  scene->bodies.initial_velocity = scene->bodies.free_motion_velocity;
}

// The scene itself, and variants of it: v* of one velocity after the other is moved by a bit.
std::vector<OwnedContactProblem> Futures(const OwnedContactProblem& scene, int count) {
  std::vector<OwnedContactProblem> futures(count, scene);
  for (int i = 1; i < count; ++i) {
    auto& of_trees = futures[i].trees.free_motion_velocity;
    auto& v_star = of_trees.empty() ? futures[i].bodies.free_motion_velocity : of_trees;
    MoveLastBit(&v_star[(i * 7) % v_star.size()]);
  }
  return futures;
}

class BatchSharingTest : public testing::Test {
 protected:
  // Solves the batch one by one with islands of any size shared, and without.
  void ExpectBitsOfSeparateSolves(const std::vector<OwnedContactProblem>& batch,
                                  const SolverOptions& options = {}) {
    SharedIslands shared(SharedIslands::kMostBytes, /*least_constraints=*/1);
    for (const OwnedContactProblem& problem : batch) {
      const Outcome expected = SolveIn(&engine_, ViewOf(problem), options, nullptr);
      const Outcome outcome = SolveIn(&engine_, ViewOf(problem), options, &shared);
      EXPECT_EQ(outcome.error, expected.error);
      EXPECT_EQ(expected.solution.shared_islands, 0);
      if (expected.error.empty()) ExpectSameAnswer(outcome.solution, expected.solution);
      shared_islands_ += outcome.solution.shared_islands;
    }
  }

  Engine engine_{2};
  int shared_islands_{0};
};

TEST_F(BatchSharingTest, ScenesWithEverythingHaveTheBitsOfSeparateSolves) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    OwnedContactProblem scene = RandomIslands(seed);
    if (seed % 2 == 0) scene.regularization.reference_time_step = 0.004;
    ExpectBitsOfSeparateSolves(Futures(scene, 4));
  }
  EXPECT_GT(shared_islands_, 200);
}

TEST_F(BatchSharingTest, EveryMethodHasTheBitsOfSeparateSolves) {
  const std::vector<SolverOptions> methods{
      {.newton = NewtonMethod::kPlain},
      {.newton = NewtonMethod::kGaussSeidel},
      {.interior_point = InteriorPoint::kAlways},
      {.interior_point = InteriorPoint::kNever},
      {.coulomb = CoulombFriction{}},
      {.max_iterations = 1},
      {.relative_tolerance = 1e-9, .rest = Rest{}},
  };
  for (const SolverOptions& options : methods) {
    SCOPED_TRACE(&options - methods.data());
    const int before = shared_islands_;
    for (uint64_t seed = 100; seed < 112; ++seed) {
      SCOPED_TRACE(seed);
      OwnedContactProblem scene = RandomIslands(seed);
      AddVelocities(&scene);
      ExpectBitsOfSeparateSolves(Futures(scene, 3), options);
    }
    EXPECT_GT(shared_islands_ - before, 20);
  }
}

TEST_F(BatchSharingTest, ScenesInShardsHaveTheBitsOfSeparateSolves) {
  ExpectBitsOfSeparateSolves(Futures(Heaps(1, 200, 5), 4));
  EXPECT_EQ(shared_islands_, 3 * 199);
  ExpectBitsOfSeparateSolves(Futures(HeapsBeforeAPile(120, 125), 3));
  EXPECT_EQ(shared_islands_, 3 * 199 + 2 * 120);
}

TEST_F(BatchSharingTest, AnEqualProblemIsCopiedAsAWhole) {
  const ProblemArrays scene = Heaps(2, 20, 5);
  SharedIslands shared;
  (void)SolveIn(&engine_, scene.View(), {}, &shared);
  const Outcome second = SolveIn(&engine_, scene.View(), {}, &shared);
  EXPECT_EQ(second.solution.shared_islands, 20);
  EXPECT_EQ(second.solution.shared_constraints, 20 * 5 * 4);
}

TEST_F(BatchSharingTest, IslandsOfCoupledTreesAreSolvedInEachProblem) {
  OwnedContactProblem scene = RandomIslands(1);  // has couplings
  ASSERT_FALSE(scene.trees.coupled_a.empty());
  SharedIslands shared(SharedIslands::kMostBytes, 1);
  (void)SolveIn(&engine_, ViewOf(scene), {}, &shared);
  const Outcome second = SolveIn(&engine_, ViewOf(scene), {}, &shared);
  std::vector<bool> is_coupled(second.solution.islands.size(), false);
  for (const auto tree : scene.trees.coupled_a) {
    is_coupled[second.solution.island_of_tree[tree]] = true;
  }
  const auto coupled = std::ranges::count(is_coupled, true);
  EXPECT_EQ(second.solution.shared_islands, std::ranges::count(is_coupled, false));
  EXPECT_GT(coupled, 0);
}

TEST_F(BatchSharingTest, SmallIslandsAreSolvedInEachProblem) {
  const ProblemArrays scene = Heaps(3, 20, 2);  // of 8 contacts
  SharedIslands shared;
  (void)SolveIn(&engine_, scene.View(), {}, &shared);
  EXPECT_EQ(SolveIn(&engine_, scene.View(), {}, &shared).solution.shared_islands, 0);
  EXPECT_EQ(shared.bytes(), 0);
}

TEST_F(BatchSharingTest, AsOneIslandNothingIsShared) {
  const ProblemArrays scene = Heaps(3, 20, 5);
  SharedIslands shared;
  const SolverOptions as_one{.islands = false};
  (void)SolveIn(&engine_, scene.View(), as_one, &shared);
  EXPECT_EQ(SolveIn(&engine_, scene.View(), as_one, &shared).solution.shared_islands, 0);
}

TEST_F(BatchSharingTest, WhatDoesNotFitIntoTheBytesOfTheBatchIsSolvedAgain) {
  const ProblemArrays scene = Heaps(4, 30, 5);
  const Outcome expected = SolveIn(&engine_, scene.View(), {}, nullptr);
  SharedIslands shared(/*max_bytes=*/100'000);
  (void)SolveIn(&engine_, scene.View(), {}, &shared);
  EXPECT_LE(shared.bytes(), 100'000);
  const Outcome second = SolveIn(&engine_, scene.View(), {}, &shared);
  ExpectSameAnswer(second.solution, expected.solution);
  EXPECT_GT(second.solution.shared_islands, 0);
  EXPECT_LT(second.solution.shared_islands, 30);
}

// One has a fault in the island that it has by itself, one in an island that all would share.
TEST_F(BatchSharingTest, AFaultIsNamedAsInASeparateSolveAndHurtsNoOther) {
  for (const int heaps : {20, 200}) {  // read as a whole, and in shards
    const ProblemArrays scene = Heaps(5, heaps, 5);
    std::vector<OwnedContactProblem> batch = Futures(scene, 5);
    batch[0].bodies.mass[12] = -1;
    batch[2].bodies.mass[77] = -1;
    batch[3].body_contacts.law.friction[42] = std::numeric_limits<double>::quiet_NaN();
    batch[3].bodies.mass[78] = -1;
    ExpectBitsOfSeparateSolves(batch);
  }
  // More where shards of a refused problem were answered before another one met the fault.
  EXPECT_GE(shared_islands_, 19 + 199);
}

TEST_F(BatchSharingTest, CountsOverALimitAreRefusedThoughTheRestWouldNotBe) {
  const ProblemArrays scene = Heaps(5, 20, 5);
  SharedIslands shared;
  (void)SolveIn(&engine_, scene.View(), {}, &shared);
  SolveTask task;
  const EngineStatus read = task.Read(scene.View(), {.max_contacts = 100}, &shared);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().field, "body_contacts.body_a");
}

TEST_F(BatchSharingTest, AnAnswerThatTheDeadlineCutShortIsNotCopied) {
  const ProblemArrays scene = Heaps(6, 20, 6);
  SharedIslands shared;
  CallLimits late;
  late.arrival = CallLimits::Clock::now() - std::chrono::seconds(1);
  ContactSolution cut;
  const EngineStatus status = engine_.Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus read = workspace.task.Read(scene.View(), {}, &shared); !read) return read;
    return engine_.Solve(&workspace, {}, late, {.time_budget = std::chrono::nanoseconds(1)}, &cut);
  });
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(cut.islands[0].status, SolveStatus::kDeadline);
  EXPECT_EQ(shared.bytes(), 0);
  const Outcome second = SolveIn(&engine_, scene.View(), {}, &shared);
  EXPECT_EQ(second.solution.shared_islands, 0);
  EXPECT_EQ(second.solution.islands[0].status, SolveStatus::kConverged);
}

TEST_F(BatchSharingTest, ACancelledCallAddsNothing) {
  const ProblemArrays scene = Heaps(6, 20, 6);
  SharedIslands shared;
  const std::atomic<bool> cancelled{true};
  CallLimits call;
  call.cancelled = &cancelled;
  EXPECT_FALSE(SolveIn(&engine_, scene.View(), {}, &shared, call).error.empty());
  EXPECT_EQ(shared.bytes(), 0);
}

TEST_F(BatchSharingTest, ThreadsThatMeetTheSameIslandsFindTheSameBits) {
  const std::vector<OwnedContactProblem> batch = Futures(Heaps(7, 150, 5), 12);
  std::vector<ContactSolution> answers(batch.size());
  SharedIslands shared;
  Engine engine(4);
  engine.ForLargestFirst(std::vector<int64_t>(batch.size(), 1), [&](int i) {
    answers[i] = SolveIn(&engine, ViewOf(batch[i]), {}, &shared).solution;
  });
  for (size_t i = 0; i < batch.size(); ++i) {
    ExpectSameAnswer(answers[i], SolveIn(&engine_, ViewOf(batch[i]), {}, nullptr).solution);
  }
}

TEST_F(BatchSharingTest, ACopyHasTheTimeOfTheOneSolve) {
  const ProblemArrays scene = Heaps(8, 20, 5);
  SharedIslands shared;
  const Outcome first = SolveIn(&engine_, scene.View(), {}, &shared);
  const Outcome second = SolveIn(&engine_, scene.View(), {}, &shared);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(first.solution.islands[i].solve_time_s, second.solution.islands[i].solve_time_s);
  }
}

}  // namespace
}  // namespace sap::test::batch_sharing
