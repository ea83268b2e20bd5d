#include "solver/cholesky/largest_entry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/solver/cholesky/block_patterns.h"

namespace sap::test {
namespace {

std::vector<double> RandomNumbers(size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

TEST(LargestEntryTest, IsTheLargestByAbsoluteValueOnAnyNumberOfThreads) {
  TaskArena arena(3, Sharing::kAlways);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{20'000}}) {
    const std::vector<double> values = RandomNumbers(count);
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    EXPECT_EQ(LargestEntry(values, nullptr), largest);
    EXPECT_EQ(LargestEntry(values, &arena), largest);
  }
}

TEST(LargestEntryTest, OfADiagonalIsTheLargestPositiveOneOnTheDiagonalsOfBlocks) {
  TaskArena arena(3, Sharing::kAlways);
  const PatternData data = Pile(2000, 5.5, 1);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  std::vector<double> values = RandomNumbers(plan.diagonal_start().back());
  double largest = 0;
  for (int i = 0; i < plan.num_blocks(); ++i) {
    const int64_t size = plan.block_row_start()[i + 1] - plan.block_row_start()[i];
    for (int64_t j = 0; j < size; ++j) {
      largest = std::max(largest, values[plan.diagonal_start()[i] + j * (size + 1)]);
    }
  }
  EXPECT_EQ(LargestDiagonalEntry(plan, values, nullptr), largest);
  EXPECT_EQ(LargestDiagonalEntry(plan, values, &arena), largest);

  values[plan.diagonal_start()[1]] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_GT(LargestDiagonalEntry(plan, values, &arena), 0);
  for (double& value : values) value = -std::abs(value);
  EXPECT_EQ(LargestDiagonalEntry(plan, values, &arena), 0);
}

}  // namespace
}  // namespace sap::test
