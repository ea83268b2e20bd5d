#include "solver/run/island_forecast.h"

#include <gtest/gtest.h>

#include <numeric>

#include "solver/solve.h"
#include "tests/support/random_constraints.h"

namespace sap {
namespace {

using test::Checked;

TEST(IslandForecastTest, TimeGrowsWithTheProblem) {
  EXPECT_EQ(PredictedSolveTime(Checked(test::ProblemArrays())), 0);
  const double small = PredictedSolveTime(Checked(test::Heaps(1, 2, 2)));
  const double large = PredictedSolveTime(Checked(test::Heaps(1, 20, 3)));
  EXPECT_GT(small, 0);
  EXPECT_GT(large, small);
}

IslandForecast Forecast(const test::ProblemArrays& arrays) {
  ProblemLayout layout;
  EXPECT_TRUE(layout.Read(arrays.View()));
  IslandForecast forecast;
  ForecastIslands(layout, &forecast);
  return forecast;
}

TEST(IslandForecastTest, IslandsAreThoseOfTheSolutionAndTheirTimesAddUp) {
  for (int seed = 0; seed < 20; ++seed) {
    const test::ProblemArrays arrays = test::RandomConstraintsOfEveryKind(
        seed, {.contacts = {.trees = 40, .contacts = 20, .world_share = 0.5}, .rows = 6});
    const ContactProblem problem = Checked(arrays);
    const IslandForecast forecast = Forecast(arrays);
    EXPECT_EQ(forecast.island_of_tree, Solve(problem).island_of_tree);
    const std::vector<double>& times = forecast.solve_time_s;
    EXPECT_NEAR(std::accumulate(times.begin(), times.end(), 0.0), PredictedSolveTime(problem),
                1e-12);
  }
}

TEST(IslandForecastTest, TheLargerIslandTakesLonger) {
  const IslandForecast forecast = Forecast(test::HeapsBeforeAPile(3, 60));
  ASSERT_EQ(forecast.solve_time_s.size(), 4u);
  EXPECT_DOUBLE_EQ(forecast.solve_time_s[0], forecast.solve_time_s[1]);
  EXPECT_GT(forecast.solve_time_s[3], 8 * forecast.solve_time_s[0]);
}

}  // namespace
}  // namespace sap
