#include "solver/sharing_trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace sap::test {
namespace {

constexpr double kAnyTime = std::numeric_limits<double>::infinity();

// Solves one island again and again on a machine where each way takes a given time.
class Machine {
 public:
  Machine(double alone_ms, double shared_ms) { Becomes(alone_ms, shared_ms); }

  void Becomes(double alone_ms, double shared_ms) {
    alone_s_ = 1e-3 * alone_ms;
    shared_s_ = 1e-3 * shared_ms;
  }

  // How many of the next solves are by several threads.
  int Shared(int solves, double flops = 2e6, double time_left_s = kAnyTime) {
    int count = 0;
    for (int i = 0; i < solves; ++i) {
      const bool shared = trials_.Shares(flops, time_left_s);
      const double seconds = shared ? shared_s_ : alone_s_;
      trials_.Took(flops, shared, /*iterations=*/8, seconds);
      time_s_ += seconds;
      count += shared ? 1 : 0;
    }
    return count;
  }
  double time_s() const { return time_s_; }

 private:
  SharingTrials trials_;
  double alone_s_{0};
  double shared_s_{0};
  double time_s_{0};
};

TEST(SharingTrialsTest, AnIslandThatLosesByThreadsIsSolvedByOneAfterTenSolves) {
  Machine machine(/*alone_ms=*/2, /*shared_ms=*/3);
  EXPECT_EQ(machine.Shared(10), 10);
  EXPECT_EQ(machine.Shared(100), 0);
}

TEST(SharingTrialsTest, OneThatGainsIsSolvedByOneThreadOnceAndThenSeldom) {
  Machine machine(/*alone_ms=*/2, /*shared_ms=*/1);
  EXPECT_EQ(machine.Shared(11), 10);
  EXPECT_EQ(machine.Shared(4990), 4980);
}

TEST(SharingTrialsTest, TrialsLoseAFiveHundredthOfTheTime) {
  for (const double alone_ms : {0.5, 0.9, 1.3, 4.0, 20.0}) {
    Machine machine(alone_ms, /*shared_ms=*/1);
    machine.Shared(11);  // the first trial, of which nothing is known
    const double begin_s = machine.time_s();
    constexpr int kSolves = 20000;
    machine.Shared(kSolves);
    const double least_s = 1e-3 * std::min(alone_ms, 1.0) * kSolves;
    EXPECT_LE(machine.time_s() - begin_s, 1.0021 * least_s) << alone_ms;
  }
}

TEST(SharingTrialsTest, WhatTheMachineBecomesIsNoticed) {
  Machine machine(/*alone_ms=*/2, /*shared_ms=*/1.5);
  EXPECT_GT(machine.Shared(1000), 990);
  machine.Becomes(/*alone_ms=*/2, /*shared_ms=*/3);
  machine.Shared(20);
  EXPECT_LT(machine.Shared(1000), 10);
  machine.Becomes(/*alone_ms=*/2, /*shared_ms=*/1.5);
  machine.Shared(1000);
  EXPECT_GT(machine.Shared(1000), 990);
}

TEST(SharingTrialsTest, SizesAreKnownEachByItself) {
  Machine machine(/*alone_ms=*/2, /*shared_ms=*/3);
  machine.Shared(20, /*flops=*/2e6);
  EXPECT_EQ(machine.Shared(10, /*flops=*/2e7), 10);
  EXPECT_EQ(machine.Shared(10, /*flops=*/2e7), 0);
  EXPECT_EQ(machine.Shared(10, /*flops=*/2.1e6), 0);
}

TEST(SharingTrialsTest, TheLargestIslandsAreNotTried) {
  Machine machine(/*alone_ms=*/50, /*shared_ms=*/60);
  EXPECT_EQ(machine.Shared(1000, /*flops=*/2e8), 1000);
}

TEST(SharingTrialsTest, ASolveThatATrialCouldMakeLateIsNone) {
  Machine machine(/*alone_ms=*/2, /*shared_ms=*/3);
  EXPECT_EQ(machine.Shared(100, /*flops=*/2e6, /*time_left_s=*/0.020), 100);
  EXPECT_EQ(machine.Shared(100, /*flops=*/2e6, /*time_left_s=*/0.030), 0);
}

TEST(SharingTrialsTest, SolvesWithoutIterationsTellNothing) {
  SharingTrials trials;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(trials.Shares(2e6, kAnyTime));
    trials.Took(2e6, /*shared=*/true, /*iterations=*/0, 1e-3);
  }
}

}  // namespace
}  // namespace sap::test
