#include "solver/split/split_gain.h"

#include <gtest/gtest.h>

#include "solver/split/assignment.h"

namespace sap {
namespace {

bool Pays(const std::vector<double>& times_s, int servers, int threads, size_t bytes = 0) {
  return PaysOff(times_s, AssignLargestFirst(times_s, servers), threads, bytes);
}

TEST(SplitGainTest, ManyLargeIslandsPay) {
  EXPECT_TRUE(Pays(std::vector<double>(200, 2e-3), 4, 16));
  EXPECT_TRUE(Pays({0.1, 0.1}, 2, 1));
}

TEST(SplitGainTest, OneIslandThatDominatesDoesNot) {
  EXPECT_FALSE(Pays({1.0}, 4, 1));
  std::vector<double> times(100, 1e-3);
  times.push_back(1.0);
  EXPECT_FALSE(Pays(times, 4, 16));
  EXPECT_TRUE(Pays(times, 4, 1));  // 1.1 s by one thread, 1 s with the small ones
}

TEST(SplitGainTest, AsManyIslandsAsAServerHasThreadsDoNot) {
  EXPECT_FALSE(Pays(std::vector<double>(16, 4e-3), 4, 16));
  EXPECT_TRUE(Pays(std::vector<double>(64, 4e-3), 4, 16));
}

TEST(SplitGainTest, WhatTheWireCostsMoreThanItSavesDoesNot) {
  EXPECT_FALSE(Pays(std::vector<double>(800, 1.5e-3 / 800), 4, 16));
  const std::vector<double> times(100, 1e-3);
  EXPECT_TRUE(Pays(times, 4, 1, size_t{10} << 20));
  EXPECT_FALSE(Pays(times, 4, 1, size_t{1} << 40));
}

TEST(SplitGainTest, NothingAndOneServerDoNot) {
  EXPECT_FALSE(Pays({}, 4, 1));
  EXPECT_FALSE(Pays({1.0, 1.0}, 1, 1));
}

TEST(SplitGainTest, AShardTakesAsLongAsItsLargestIslandOrAllOfThemOnTheThreads) {
  const std::vector<double> times{4, 1, 1, 1, 1};
  const std::vector<int> all{0, 1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(TimeOnServer(times, all, 1), 8);
  EXPECT_DOUBLE_EQ(TimeOnServer(times, all, 2), 4);
  EXPECT_DOUBLE_EQ(TimeOnServer(times, all, 8), 4);
  EXPECT_DOUBLE_EQ(TimeOnServer(times, std::vector<int>{1, 2}, 1), 2);
}

}  // namespace
}  // namespace sap
