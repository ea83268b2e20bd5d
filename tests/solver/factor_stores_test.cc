#include "solver/run/factor_stores.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/solve.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

constexpr size_t kUnlimited = SIZE_MAX;

// A thread that solves islands: claims tasks in order, and takes a store for each island.
struct Worker {
  int task{-1};  // -1: none yet
  std::optional<FactorStores::Lease> lease;
};

// Threads that stop and go on in any order.
void ExpectLargeEnoughStores(uint64_t seed, int threads, int tasks) {
  Random random(seed);
  std::vector<FactorPairBytes> needed(tasks);
  for (FactorPairBytes& bytes : needed) bytes.exact = 64 * UniformInt(&random, 0, 20);
  FactorStores stores;
  stores.Plan(needed, threads);
  stores.Reserve(kUnlimited);
  std::vector<Worker> workers(threads);
  int claimed = 0;
  for (int step = 0; step < 60 * tasks; ++step) {
    Worker& worker = workers[UniformInt(&random, 0, threads - 1)];
    if (worker.lease) {
      worker.lease.reset();
      if (UniformInt(&random, 0, 2) > 0) worker.task = -1;  // else the task has another island
    } else if (worker.task < 0) {
      if (claimed < tasks) worker.task = claimed++;
    } else {
      worker.lease.emplace(&stores, worker.task);
      ASSERT_GE(worker.lease->factors()->storage_bytes(), needed[worker.task].exact) << seed;
    }
  }
}

TEST(FactorStoresTest, AStoreThatIsLargeEnoughIsFreeInWhateverOrderThreadsRun) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    ExpectLargeEnoughStores(seed, 1 + seed % 5, 1 + seed % 13);
  }
}

TEST(FactorStoresTest, HoldsTheLargestOncePerThreadAtMost) {
  const std::vector<FactorPairBytes> needed{{.exact = 64}, {.exact = 6400}, {}, {.exact = 128}, {}};
  for (const int threads : {1, 2, 3, 8}) {
    FactorStores stores;
    const size_t planned = stores.Plan(needed, threads);
    EXPECT_EQ(stores.storage_bytes(), 0u);
    stores.Reserve(kUnlimited);
    EXPECT_EQ(stores.storage_bytes(), planned);
    EXPECT_LE(planned, 6400u * threads);
    EXPECT_LE(planned, 2 * 6400u + 2 * 128u);
  }
}

// Two problems that fit by themselves do not take the sum of both.
TEST(FactorStoresTest, WhatIsLeftOfEarlierProblemsCountsToo) {
  constexpr size_t kMost = 64'000;
  FactorStores stores;
  const std::vector<FactorPairBytes> alike(4, {.exact = 16'000});
  const std::vector<FactorPairBytes> one{{.exact = kMost}};
  for (int round = 0; round < 3; ++round) {
    for (const std::vector<FactorPairBytes>* needed : {&alike, &one}) {
      EXPECT_EQ(stores.Plan(*needed, 4), kMost);
      stores.Reserve(kMost);
      EXPECT_EQ(stores.storage_bytes(), kMost);
    }
  }
}

size_t BytesAlone(const ProblemArrays& arrays) {
  Solver solver(nullptr);
  ContactSolution solution;
  EXPECT_TRUE(solver.Solve(Checked(arrays), {}, StopToken(), &solution));
  return solver.factor_bytes();
}

// The pile is the last island by its trees, and another one by number in every problem.
TEST(FactorStoresTest, APileBehindMoreAndMoreHeapsTakesNoMoreMemory) {
  constexpr int kPile = 150;
  const size_t pile = BytesAlone(HeapsBeforeAPile(0, kPile));
  const size_t heap = BytesAlone(Heaps(1, 1, 7));
  for (const int threads : {1, 2, 3}) {
    TaskArena arena(threads, Sharing::kAlways);
    Solver solver(&arena);
    ContactSolution solution;
    size_t without_heaps = 0;
    for (int heaps = 0; heaps <= 30; heaps += 3) {
      ASSERT_TRUE(
          solver.Solve(Checked(HeapsBeforeAPile(heaps, kPile)), {}, StopToken(), &solution));
      if (heaps == 0) without_heaps = solver.factor_bytes();
      EXPECT_LE(solver.factor_bytes(), without_heaps + 2 * threads * heap) << heaps;
    }
    EXPECT_LE(without_heaps, 2 * pile);  // updates of tasks that run at the same time
  }
}

TEST(MemoryLimitTest, AFactorizationOverTheLimitIsRefusedBeforeItIsAllocated) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(2, 150));
  const ContactSolution expected = Solve(problem);
  for (const NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
    for (const int threads : {1, 3}) {
      TaskArena arena(threads, Sharing::kAlways);
      Solver solver(&arena);
      ContactSolution solution;
      SolverOptions options{.newton = newton, .max_factor_bytes = 1000};
      const auto refused = solver.Solve(problem, options, StopToken(), &solution);
      ASSERT_FALSE(refused);
      EXPECT_EQ(solver.factor_bytes(), 0u);
      EXPECT_EQ(refused.error().allowed_bytes, 1000u);
      options.max_factor_bytes = refused.error().needed_bytes - 1;
      EXPECT_FALSE(solver.Solve(problem, options, StopToken(), &solution));
      options.max_factor_bytes = refused.error().needed_bytes;
      ASSERT_TRUE(solver.Solve(problem, options, StopToken(), &solution));
      EXPECT_LE(solver.factor_bytes(), options.max_factor_bytes);
      EXPECT_GT(solver.factor_bytes(), options.max_factor_bytes / 4);
      if (newton == NewtonMethod::kAccelerated) {
        EXPECT_EQ(solution.velocity, expected.velocity);
      }
    }
  }
}

TEST(MemoryLimitTest, TheRefusalNamesBothSizes) {
  const MemoryLimitExceeded refusal{.needed_bytes = (size_t{5} << 30) + 1,
                                    .allowed_bytes = size_t{4} << 30};
  EXPECT_EQ(refusal.Message(),
            "the factorization of this problem takes up to 5121 MiB; a solve may take 4096 MiB");
}

}  // namespace
}  // namespace sap::test
