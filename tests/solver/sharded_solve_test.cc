// A scene in shards is solved with the bits that it has as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "solver/run/sharded_problem.h"
#include "solver/solve.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_islands.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"

namespace sap::test {
namespace {

ContactSolution SolveWhole(const ContactProblemView& view, const SolverOptions& options = {},
                           std::span<const double> guess = {}) {
  auto problem = ContactProblem::Make(view);
  EXPECT_TRUE(problem.has_value()) << problem.error().Message();
  if (!guess.empty()) problem->SetGuess(guess);
  return Solve(*problem, options);
}

void ExpectSameSolution(const ContactSolution& a, const ContactSolution& b) {
  ExpectSameBits(a, b);
  EXPECT_EQ(a.island_of_tree, b.island_of_tree);
  ASSERT_EQ(a.islands.size(), b.islands.size());
  for (size_t i = 0; i < a.islands.size(); ++i) {
    EXPECT_EQ(a.islands[i].status, b.islands[i].status);
    EXPECT_EQ(a.islands[i].dofs, b.islands[i].dofs);
    EXPECT_EQ(a.islands[i].contacts, b.islands[i].contacts);
    EXPECT_EQ(a.islands[i].rows, b.islands[i].rows);
  }
}

// Takes scenes of any size.
class ShardedSolveTest : public testing::Test {
 protected:
  bool Read(const ContactProblemView& view, int least_trees = 0) {
    return problem_.Read(view, {}, least_trees);
  }

  void ExpectBitsOfWhole(const ContactProblemView& view, const SolverOptions& options = {}) {
    if (!Read(view)) return;
    shards_ += problem_.shards().count();
    ContactSolution solution;
    const auto solved = solver_.Solve(problem_, {}, options, StopToken(), &solution);
    ASSERT_TRUE(solved.has_value() && *solved);
    ExpectSameSolution(solution, SolveWhole(view, options));
  }

  TaskArena arena_{3, Sharing::kAlways};
  Solver solver_{&arena_};
  ShardedProblem problem_;
  int shards_{0};
};

class GoldenShardsTest : public ShardedSolveTest, public testing::WithParamInterface<GoldenSet> {};

TEST_P(GoldenShardsTest, CertifiedProblemsHaveTheBitsOfTheWhole) {
  const std::vector<std::string> names = GoldenNames("", GetParam());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const GoldenProblem golden = LoadGolden(name, GetParam());
    ExpectBitsOfWhole(golden.arrays.View());
  }
  EXPECT_GT(shards_, static_cast<int>(names.size()));  // some had several
}

INSTANTIATE_TEST_SUITE_P(Sets, GoldenShardsTest,
                         testing::Values(GoldenSet::kFriction, GoldenSet::kConstraints,
                                         GoldenSet::kSoft));

TEST_F(ShardedSolveTest, ScenesWithEverythingHaveTheBitsOfTheWhole) {
  SolverOptions exact_friction;
  exact_friction.coulomb.emplace();
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    OwnedContactProblem scene = RandomIslands(seed);
    ExpectBitsOfWhole(ViewOf(scene));
    if (seed % 10 == 0) ExpectBitsOfWhole(ViewOf(scene), exact_friction);
  }
  EXPECT_GT(shards_, 500);
}

TEST_F(ShardedSolveTest, EstimatesByLoadsHaveTheBitsOfTheWhole) {
  ProblemArrays scene = Heaps(3, 40, 4);
  scene.regularization.rule = DelassusRule::kLoadPath;
  scene.bodies.initial_velocity.assign(scene.bodies.free_motion_velocity.size(), 0.01);
  ExpectBitsOfWhole(scene.View());
  EXPECT_GE(shards_, 40);
}

TEST_F(ShardedSolveTest, TheGuessIsThatOfTheCaller) {
  const ProblemArrays scene = Heaps(4, 30, 5);
  const ContactSolution whole = SolveWhole(scene.View());
  ASSERT_TRUE(Read(scene.View()));
  ContactSolution warm;
  ASSERT_TRUE(*solver_.Solve(problem_, whole.velocity, {}, StopToken(), &warm));
  ExpectSameSolution(warm, SolveWhole(scene.View(), {}, whole.velocity));
  for (const IslandReport& report : warm.islands) EXPECT_LE(report.iterations, 1);
}

// Small islands by 64 bodies or fewer; the pile comes last, and is solved first.
TEST_F(ShardedSolveTest, APileAmongHeapsIsAShardOfItsOwnForAnyNumberOfThreads) {
  const ProblemArrays scene = HeapsBeforeAPile(400, 125);
  ASSERT_TRUE(Read(scene.View(), Neighbours::kLeastTrees));
  const Neighbours& neighbours = problem_.neighbours();
  ASSERT_TRUE(neighbours.has_large());
  EXPECT_EQ(neighbours.order()[0], 0);
  EXPECT_EQ(problem_.shards().shard(0).islands.size(), 1U);
  EXPECT_EQ(problem_.shards().shard(0).islands[0], 400);
  const ContactSolution whole = SolveWhole(scene.View());
  for (const int threads : {1, 2, 3, 7, 16}) {
    SCOPED_TRACE(threads);
    TaskArena arena(threads, Sharing::kAlways);
    Solver solver(&arena);
    ContactSolution solution;
    for (int step = 0; step < 2; ++step) {  // the plan of the pile is made, then kept
      ASSERT_TRUE(*solver.Solve(problem_, {}, {}, StopToken(), &solution));
      ExpectSameSolution(solution, whole);
    }
  }
}

TEST_F(ShardedSolveTest, AFewSmallIslandsAreNotWorthShards) {
  const ProblemArrays small = Heaps(1, 10, 4), pile = BlockOfBodies(14);  // one island of 2744
  EXPECT_FALSE(Read(small.View(), Neighbours::kLeastTrees));
  EXPECT_FALSE(Read(pile.View(), Neighbours::kLeastTrees));
}

TEST_F(ShardedSolveTest, ARefusedValueOfOneShardRefusesTheScene) {
  ProblemArrays scene = Heaps(5, 30, 4);
  scene.bodies.mass[77] = -1;
  ASSERT_TRUE(Read(scene.View()));  // by its indices
  ContactSolution solution;
  const auto solved = solver_.Solve(problem_, {}, {}, StopToken(), &solution);
  ASSERT_TRUE(solved.has_value());
  EXPECT_FALSE(*solved);
  scene = Heaps(5, 30, 4);
  ExpectBitsOfWhole(scene.View());  // the solver goes on
}

TEST_F(ShardedSolveTest, WhatIndicesAndLengthsTellIsLeftToTheReaderOfTheWhole) {
  ProblemArrays scene = Heaps(5, 30, 4);
  scene.body_contacts.body_a[17] = 1000;
  EXPECT_FALSE(Read(scene.View()));
  scene = Heaps(5, 30, 4);
  scene.bodies.mass.pop_back();
  EXPECT_FALSE(Read(scene.View()));
  scene = Heaps(5, 30, 4);
  EXPECT_FALSE(problem_.Read(scene.View(), {.max_contacts = 10}, 0));
  scene.rows.entries.assign(4, 4'000'000'000U);  // more pairs of trees than there are numbers for
  EXPECT_FALSE(Read(scene.View()));
}

TEST_F(ShardedSolveTest, AFactorizationOverTheLimitIsAnError) {
  const ProblemArrays scene = HeapsBeforeAPile(20, 125);
  ASSERT_TRUE(Read(scene.View()));
  ContactSolution solution;
  const auto solved =
      solver_.Solve(problem_, {}, {.max_factor_bytes = 1000}, StopToken(), &solution);
  ASSERT_FALSE(solved.has_value());
  EXPECT_GT(solved.error().needed_bytes, 1000U);
}

TEST_F(ShardedSolveTest, AfterTheDeadlineEveryIslandHasItsGuess) {
  const ProblemArrays scene = Heaps(6, 30, 4);
  ASSERT_TRUE(Read(scene.View()));
  const std::vector<double> guess(scene.bodies.free_motion_velocity.size(), 0.25);
  const StopToken late(nullptr, StopToken::Clock::now());
  ContactSolution solution;
  ASSERT_TRUE(*solver_.Solve(problem_, guess, {}, late, &solution));
  EXPECT_EQ(solution.velocity, guess);
  ASSERT_EQ(solution.islands.size(), 30U);
  for (const IslandReport& report : solution.islands) {
    EXPECT_EQ(report.iterations, 0);
    EXPECT_TRUE(report.status == SolveStatus::kDeadline ||
                report.status == SolveStatus::kConverged);
  }
}

// Two threads that write to one line of a cache wait for each other.
TEST_F(ShardedSolveTest, OfTheLinesOfTheAnswerOneInFiftyIsWrittenByTwoShards) {
  const ProblemArrays scene = Heaps(7, 3000, 4);
  ASSERT_TRUE(Read(scene.View(), Neighbours::kLeastTrees));
  const auto share = [&](std::span<const int> Shard::*places, int bytes) {
    std::map<int64_t, std::set<int>> shards_of_line;
    for (int i = 0; i < problem_.shards().count(); ++i) {
      const Shard shard = problem_.shards().shard(i);
      for (const int place : shard.*places) {
        const int64_t begin = int64_t{place} * bytes;
        for (int64_t line = begin / 64; line <= (begin + bytes - 1) / 64; ++line) {
          shards_of_line[line].insert(i);
        }
      }
    }
    const auto shared = std::ranges::count_if(
        shards_of_line, [](const auto& line) { return line.second.size() > 1; });
    return static_cast<double>(shared) / static_cast<double>(shards_of_line.size());
  };
  EXPECT_LT(share(&Shard::trees, 6 * sizeof(double)), 0.02);
  EXPECT_LT(share(&Shard::contacts, 3 * sizeof(double)), 0.02);
  EXPECT_LT(share(&Shard::contacts, sizeof(double)), 0.02);
  EXPECT_LT(share(&Shard::islands, sizeof(IslandReport)), 0.03);
}

}  // namespace
}  // namespace sap::test
