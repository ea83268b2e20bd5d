#include "client/cpp/simulation/run_report.h"

#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

namespace sap::simulation {
namespace {

TEST(PercentileTest, IsTheSmallestValueThatSoManyDoNotExceed) {
  std::vector<double> values(200);
  std::iota(values.rbegin(), values.rend(), 1);  // 200 down to 1
  EXPECT_EQ(Percentile(values, 50), 100);
  EXPECT_EQ(Percentile(values, 99), 198);
  EXPECT_EQ(Percentile(values, 100), 200);
  EXPECT_EQ(Percentile(values, 0), 1);
  EXPECT_EQ(Percentile({7}, 99), 7);
  EXPECT_EQ(Percentile({}, 50), 0);
}

std::vector<StepStatistics> TwoSteps() {
  StepStatistics first;
  first.contacts = 100;
  first.islands = 5;
  first.largest_island_dofs = 60;
  first.iterations = 4;
  first.iterations_weighted = 2.5;
  first.solve_s = 0.001;
  first.round_trip_s = 0.002;
  first.momentum_error = 1e-7;
  first.penetration = 0.003;
  first.kinetic_energy = 12.5;
  first.bodies = 20;
  first.long_step_bodies = 5;
  first.rest = {.woken_by_pair = 1, .woken_by_input = 2, .long_steps = 4, .long_steps_refused = 3};
  StepStatistics second = first;
  second.step = 1;
  second.contacts = 300;
  second.iterations = 8;
  second.bodies = 10;
  return {first, second};
}

TEST(StepsAsCsvTest, HasOneRowPerStepUnderTheNamesOfTheColumns) {
  EXPECT_EQ(StepsAsCsv(TwoSteps()),
            "step,contacts,islands,largest_island_dofs,iterations,iterations_weighted,solve_s,"
            "round_trip_s,momentum_error,penetration,kinetic_energy,bodies,long_step_bodies,"
            "woken_by_pair,woken_by_input,long_steps,long_steps_refused\n"
            "0,100,5,60,4,2.5,0.001,0.002,1e-07,0.003,12.5,20,5,1,2,4,3\n"
            "1,300,5,60,8,2.5,0.001,0.002,1e-07,0.003,12.5,10,5,1,2,4,3\n");
}

// The words of the line of the table that starts with a name, after the name.
std::vector<std::string> Numbers(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind(name, 0) != 0) continue;
    std::istringstream words(line.substr(name.size()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(SummaryTableTest, GivesMeanPercentilesAndLargest) {
  const std::string table = SummaryTable(TwoSteps());
  using Words = std::vector<std::string>;
  EXPECT_EQ(Numbers(table, "contacts"), (Words{"200", "100", "300", "300"}));
  EXPECT_EQ(Numbers(table, "iterations (largest of islands)"),
            (Words{"6.00", "4.00", "8.00", "8.00"}));
  EXPECT_EQ(Numbers(table, "round trip, ms"), (Words{"2.000", "2.000", "2.000", "2.000"}));
  EXPECT_EQ(Numbers(table, "largest penetration, mm"), (Words{"3.000", "3.000", "3.000", "3.000"}));
}

TEST(SummaryTableTest, ARunWithoutStepsHasATableOfZeros) {
  EXPECT_EQ(Numbers(SummaryTable({}), "contacts"), (std::vector<std::string>{"0", "0", "0", "0"}));
}

TEST(RestSummaryTest, GivesSharesOfAllBodyStepsAndSumsOfIslands) {
  EXPECT_EQ(RestSummary(TwoSteps(), 100),
            "body steps solved: 15.00 %, and long steps 5.00 %\n"
            "islands woken by a pair: 2, by an input: 4, by the horizon: 6 (long steps refused, of "
            "8)\n");
}

}  // namespace
}  // namespace sap::simulation
