#include "solver/split/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/random_problem.h"

namespace sap {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DealingTest, TheLargestGoesFirstAndEachToTheServerWithTheLeast) {
  // 5 | 4 | 3, then 3 to the last, 2 to the second, 1 to the first.
  const std::vector<double> times{3, 1, 5, 2, 4, 3};
  EXPECT_THAT(AssignLargestFirst(times, 3),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(0, 5)));
}

TEST(DealingTest, EqualIslandsGoInTheOrderOfTheirNumbers) {
  EXPECT_THAT(AssignLargestFirst(std::vector<double>(5, 1.0), 2),
              ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 3)));
}

TEST(DealingTest, NoServerGetsNothing) {
  EXPECT_THAT(AssignLargestFirst(std::vector<double>{1, 2}, 5),
              ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(AssignLargestFirst(std::vector<double>(), 3), IsEmpty());
  EXPECT_THAT(AssignLargestFirst(std::vector<double>{1, 2}, 1), ElementsAre(ElementsAre(0, 1)));
}

double Longest(const std::vector<std::vector<int>>& dealt, const std::vector<double>& times) {
  double longest = 0;
  for (const std::vector<int>& islands : dealt) {
    double sum = 0;
    for (const int island : islands) sum += times[island];
    longest = std::max(longest, sum);
  }
  return longest;
}

// Over all ways to deal so few islands.
double ShortestPossible(const std::vector<double>& times, int servers) {
  const size_t n = times.size();
  double shortest = std::accumulate(times.begin(), times.end(), 0.0);
  const auto ways = static_cast<int>(std::pow(servers, n));
  for (int way = 0; way < ways; ++way) {
    std::vector<double> loads(servers, 0.0);
    int rest = way;
    for (const double time : times) {
      loads[rest % servers] += time;
      rest /= servers;
    }
    shortest = std::min(shortest, *std::ranges::max_element(loads));
  }
  return shortest;
}

TEST(DealingTest, TheLongestShardIsWithinGrahamsBoundOfTheShortestPossible) {
  test::Random random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const int servers = test::UniformInt(&random, 2, 3);
    std::vector<double> times(test::UniformInt(&random, 2, 7));
    for (double& time : times) time = test::LogUniform(&random, 0.1, 10);
    const auto dealt = AssignLargestFirst(times, servers);
    const double bound = (4.0 / 3 - 1.0 / (3 * servers)) * ShortestPossible(times, servers);
    EXPECT_LE(Longest(dealt, times), bound * (1 + 1e-12));
  }
}

TEST(DealingTest, EveryIslandIsDealtOnce) {
  test::Random random(2);
  std::vector<double> times(500);
  for (double& time : times) time = test::LogUniform(&random, 1e-6, 1);
  for (const int servers : {1, 2, 7, 64}) {
    std::vector<int> all;
    for (const std::vector<int>& islands : AssignLargestFirst(times, servers)) {
      EXPECT_TRUE(std::ranges::is_sorted(islands));
      all.insert(all.end(), islands.begin(), islands.end());
    }
    std::ranges::sort(all);
    std::vector<int> expected(times.size());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

}  // namespace
}  // namespace sap
