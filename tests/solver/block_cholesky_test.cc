#include "solver/block_cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "tests/solver/block_systems.h"

namespace sap {
namespace {

using testing::BlockValues;
using testing::PatternData;

struct Case {
  std::string name;
  PatternData data;
};

std::vector<Case> Cases() {
  using namespace testing;
  std::vector<Case> cases;
  const auto add = [&](std::string name, PatternData data) {
    cases.push_back({std::move(name), std::move(data)});
  };
  add("empty", Blocks(0));
  add("one row", Blocks(1, 1));
  for (int n = 1; n <= 20; ++n) {
    const std::string number = std::to_string(n);
    add("one block of " + number, Blocks(1, n));
  }
  add("one large block", Blocks(1, 200));
  add("two blocks", Chain(2));
  add("without edges", Blocks(30));
  add("chain", Chain(60));
  add("chain of hinges", Chain(90, 1));
  add("star, hub first", Star(40, 0));
  add("star, hub last", Star(40, 40));
  add("clique", Clique(12));
  add("large clique", Clique(60));
  add("grid", Grid(9, 11));
  add("large grid", Grid(20, 14));
  add("pile", Pile(120, 5.5, 1));
  add("larger pile", Pile(200, 5.5, 2));
  add("disconnected", RandomGraph(80, 50, 3));
  for (unsigned seed = 0; seed < 10; ++seed) {
    const std::string number = std::to_string(seed);
    add("tree " + number, RandomTree(20 + 5 * static_cast<int>(seed), seed));
    add("mixed tree " + number, WithMixedSizes(RandomTree(30, seed), seed));
    add("mixed graph " + number, WithMixedSizes(RandomGraph(30, 70, seed), seed, 13));
    add("articulated " + number, WithMixedSizes(RandomGraph(8, 12, seed), seed, 126));
  }
  return cases;
}

template <typename Scalar>
void ExpectSolves(const Case& c, Ordering ordering, double tolerance) {
  SCOPED_TRACE(c.name);
  const BlockValues values = testing::RandomValues(c.data, 7);
  const Eigen::MatrixXd H = testing::DenseMatrix(c.data, values);
  const int n = static_cast<int>(H.rows());
  const EliminationPlan plan = EliminationPlan::Make(c.data.pattern(), ordering);
  BlockCholesky<Scalar> cholesky;
  ASSERT_EQ(cholesky.Factor(plan, values.diagonal, values.off_diagonal, StopToken(), nullptr),
            BlockCholesky<Scalar>::FactorStatus::kOk);
  const Eigen::VectorXd rhs = testing::RandomVector(n, 8);
  Eigen::VectorXd x(n);
  cholesky.Solve(plan, {rhs.data(), static_cast<size_t>(n)}, {x.data(), static_cast<size_t>(n)});
  const Eigen::VectorXd expected = H.llt().solve(rhs);
  EXPECT_LE((x - expected).norm(), tolerance * expected.norm());
}

TEST(BlockCholeskyTest, SolvesAsDenseCholeskyDoes) {
  for (const Case& c : Cases()) {
    for (const Ordering ordering :
         {Ordering::kAuto, Ordering::kMinimumDegree, Ordering::kNestedDissection}) {
      ExpectSolves<double>(c, ordering, 1e-11);
    }
  }
}

TEST(BlockCholeskyTest, SolvesInSinglePrecision) {
  for (const Case& c : Cases()) ExpectSolves<float>(c, Ordering::kAuto, 1e-3);
}

}  // namespace
}  // namespace sap
