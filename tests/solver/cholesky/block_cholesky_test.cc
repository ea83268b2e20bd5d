#include "solver/cholesky/block_cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/SparseCholesky>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/solver/cholesky/block_systems.h"

namespace sap {
namespace {

using test::BlockValues;
using test::PatternData;
using DoubleStatus = BlockCholesky<double>::FactorStatus;
using FloatStatus = BlockCholesky<float>::FactorStatus;

struct Case {
  std::string name;
  PatternData data;
};

std::vector<Case> MakeCases() {
  using namespace test;
  std::vector<Case> cases;
  const auto add = [&](std::string name, PatternData data) {
    cases.push_back({std::move(name), std::move(data)});
  };
  add("empty", Blocks(0));
  add("one row", Blocks(1, 1));
  for (int n = 1; n <= 20; ++n) {
    const std::string number = std::to_string(n);
    add("one block of " + number, Blocks(1, n));
    add("two blocks of " + number, Chain(2, n));
  }
  add("one large block", Blocks(1, 1024));
  add("without edges", Blocks(30));
  add("chain", Chain(60));
  add("chain of hinges", Chain(90, 1));
  add("star, hub first", Star(40, 0));
  add("star, hub last", Star(40, 40));
  add("clique", Clique(12));
  add("large clique", Clique(70));
  add("two cliques", TwoCliques(45, 30));
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

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = MakeCases();
  return cases;
}

template <typename Scalar>
struct Solution {
  typename BlockCholesky<Scalar>::FactorStatus status;
  Eigen::VectorXd x;
};

template <typename Scalar>
Solution<Scalar> FactorAndSolve(const EliminationPlan& plan, const BlockValues& values,
                                const Eigen::VectorXd& rhs, TaskArena* arena = nullptr) {
  BlockCholesky<Scalar> cholesky;
  Solution<Scalar> solution{
      cholesky.Factor(plan, values.diagonal, values.off_diagonal, StopToken(), arena), rhs};
  if (solution.status == BlockCholesky<Scalar>::FactorStatus::kOk) {
    const std::span<double> x(solution.x.data(), solution.x.size());
    EXPECT_TRUE(cholesky.Solve(plan, x, x, StopToken(), arena));
  }
  return solution;
}

// A system, and its solution by dense Cholesky.
struct System {
  BlockValues values;
  Eigen::VectorXd rhs;
  Eigen::VectorXd x;
};

// One for each case: under sanitizers the dense factorizations take most of the time of a test.
const System& SystemOf(const Case& c) {
  static std::map<std::string, System> systems;
  const auto [at, is_new] = systems.try_emplace(c.name);
  System& system = at->second;
  if (is_new) {
    system.values = test::RandomValues(c.data, 7);
    const Eigen::MatrixXd H = test::SparseMatrix(c.data, system.values);
    system.rhs = test::RandomVector(static_cast<int>(H.rows()), 8);
    system.x = H.llt().solve(system.rhs);
  }
  return system;
}

template <typename Scalar>
void ExpectSolves(const Case& c, Ordering ordering, double tolerance) {
  SCOPED_TRACE(c.name);
  const System& system = SystemOf(c);
  const EliminationPlan plan = EliminationPlan::Make(c.data.pattern(), ordering);
  const Solution<Scalar> solution = FactorAndSolve<Scalar>(plan, system.values, system.rhs);
  ASSERT_EQ(solution.status, BlockCholesky<Scalar>::FactorStatus::kOk);
  EXPECT_LE((solution.x - system.x).norm(), tolerance * system.x.norm());
}

TEST(BlockCholeskyTest, SolvesAsDenseCholeskyDoes) {
  for (const Case& c : Cases()) ExpectSolves<double>(c, Ordering::kAuto, 1e-11);
}

TEST(BlockCholeskyTest, SolvesInEveryOrdering) {
  for (const Case& c : Cases()) {
    if (c.data.num_blocks() > 60) continue;
    ExpectSolves<double>(c, Ordering::kMinimumDegree, 1e-11);
    ExpectSolves<double>(c, Ordering::kNestedDissection, 1e-11);
  }
}

TEST(BlockCholeskyTest, SolvesInSinglePrecision) {
  for (const Case& c : Cases()) ExpectSolves<float>(c, Ordering::kAuto, 1e-3);
}

// Large enough for nested dissection, tasks and shared fronts.
TEST(BlockCholeskyTest, SolvesLargePileAsSparseCholeskyDoes) {
  const PatternData data = test::Pile(900, 5.5, 3);
  const BlockValues values = test::RandomValues(data, 4);
  const Eigen::SparseMatrix<double> H = test::SparseMatrix(data, values);
  const Eigen::VectorXd rhs = test::RandomVector(static_cast<int>(H.rows()), 5);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  EXPECT_EQ(plan.ordering(), Ordering::kNestedDissection);
  EXPECT_GT(plan.num_waves(), 2);
  const Solution<double> solution = FactorAndSolve<double>(plan, values, rhs);
  ASSERT_EQ(solution.status, DoubleStatus::kOk);
  const Eigen::VectorXd expected = Eigen::SimplicialLLT<Eigen::SparseMatrix<double>>(H).solve(rhs);
  EXPECT_LE((solution.x - expected).norm(), 1e-11 * expected.norm());
}

// Other values in the blocks that vary, and between two of these; by so little that the power of
// two next to the largest seldom changes.
BlockValues Varied(const PatternData& data, const BlockValues& before, unsigned seed) {
  constexpr double kShare = 0.02;
  const BlockValues other = test::RandomValues(data, seed);
  BlockValues values = before;
  size_t at = 0;
  for (int i = 0; i < data.num_blocks(); ++i) {
    const int n = data.block_size[i];
    for (int k = 0; k < n * n; ++k, ++at) {
      if (data.varies[i] != 0) values.diagonal[at] += kShare * other.diagonal[at];
    }
  }
  at = 0;
  for (size_t e = 0; e < data.edge_a.size(); ++e) {
    const int a = data.edge_a[e], b = data.edge_b[e];
    for (int k = 0; k < data.block_size[a] * data.block_size[b]; ++k, ++at) {
      if (data.varies[a] != 0 && data.varies[b] != 0) {
        values.off_diagonal[at] += kShare * other.off_diagonal[at];
      }
    }
  }
  return values;
}

std::vector<Case> VaryingCases() {
  using namespace test;
  std::vector<Case> cases{{"solid", SolidOnFloor(6, 5, 7)},
                          {"flat solid", SolidOnFloor(12, 9, 3)},
                          {"chain", WithVarying(Chain(60), 13)},
                          {"star, hub varies", WithVarying(Star(40, 0), 41)},
                          {"star, hub constant", WithVarying(Star(40, 0), 5, 1)},
                          {"clique", WithVarying(Clique(20), 7)},
                          {"pile", WithVarying(Pile(300, 5.5, 2), 60)},
                          {"dissected pile", WithVarying(Pile(900, 5.5, 3), 90)},
                          {"disconnected", WithVarying(RandomGraph(80, 50, 3), 9)},
                          {"nothing varies", WithVarying(Grid(9, 11), 1000, 999)},
                          {"all vary", WithVarying(Grid(9, 11), 1)}};
  for (unsigned seed = 0; seed < 6; ++seed) {
    cases.push_back({"articulated " + std::to_string(seed),
                     WithVarying(WithMixedSizes(RandomGraph(30, 70, seed), seed, 30), 4)});
  }
  return cases;
}

// The second and third factorizations keep what does not vary.
template <typename Scalar>
void ExpectKeptFrontsSolve(const Case& c, TaskArena* arena, double tolerance, int* num_compared) {
  SCOPED_TRACE(c.name);
  const EliminationPlan plan = EliminationPlan::Make(c.data.pattern());
  const BlockValues first = test::RandomValues(c.data, 7);
  const auto solution = [&](const BlockValues& values, const Eigen::VectorXd& rhs,
                            TaskArena* threads, BlockCholesky<Scalar>* cholesky) {
    Eigen::VectorXd x = rhs;
    const std::span<double> all(x.data(), x.size());
    EXPECT_EQ(cholesky->Factor(plan, values.diagonal, values.off_diagonal, StopToken(), threads),
              BlockCholesky<Scalar>::FactorStatus::kOk);
    EXPECT_TRUE(cholesky->Solve(plan, all, all, StopToken(), threads));
    return x;
  };
  BlockCholesky<Scalar> kept;
  for (const unsigned seed : {0u, 8u, 9u}) {
    const BlockValues values = seed == 0 ? first : Varied(c.data, first, seed);
    const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), seed);
    const Eigen::VectorXd x = solution(values, rhs, arena, &kept);
    BlockCholesky<Scalar> fresh;
    const Eigen::VectorXd expected = solution(values, rhs, nullptr, &fresh);
    if (fresh.scale() == kept.scale()) {
      EXPECT_EQ(x, expected);
      ++*num_compared;
    }
    const Eigen::SparseMatrix<double> H = test::SparseMatrix(c.data, values);
    EXPECT_LE((H * x - rhs).norm(), tolerance * H.norm() * x.norm());
  }
}

TEST(BlockCholeskyTest, FrontsThatDoNotVaryAreKeptAndChangeNoBit) {
  int num_compared = 0;
  for (const Case& c : VaryingCases()) {
    ExpectKeptFrontsSolve<double>(c, nullptr, 1e-13, &num_compared);
    ExpectKeptFrontsSolve<float>(c, nullptr, 1e-5, &num_compared);
    for (const int threads : {2, 4}) {
      TaskArena arena(threads, Sharing::kAlways);
      ExpectKeptFrontsSolve<double>(c, &arena, 1e-13, &num_compared);
    }
  }
  EXPECT_GE(num_compared, 3 * static_cast<int>(VaryingCases().size()));
}

// Read at all would be a wrong solution: what does not vary is poisoned after the first Factor.
TEST(BlockCholeskyTest, WhatDoesNotVaryIsNotReadAgainUntilItIsForgotten) {
  const PatternData data = test::SolidOnFloor(6, 5, 7);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  ASSERT_GT(plan.varying_flops(), 0);
  ASSERT_LT(plan.varying_flops(), plan.factor_flops());
  BlockValues values = test::RandomValues(data, 7);
  BlockCholesky<double> cholesky;
  const auto factor = [&] {
    return cholesky.Factor(plan, values.diagonal, values.off_diagonal, StopToken(), nullptr);
  };
  ASSERT_EQ(factor(), DoubleStatus::kOk);
  const int last = data.num_blocks() - 1;  // in the upper layer
  values.diagonal[plan.diagonal_start()[last]] = -1;
  EXPECT_EQ(factor(), DoubleStatus::kOk);
  cholesky.Forget();
  EXPECT_EQ(factor(), DoubleStatus::kNotPositiveDefinite);
  EXPECT_EQ(factor(), DoubleStatus::kNotPositiveDefinite);  // nothing is kept of a failure
}

TEST(BlockCholeskyTest, BitsAreTheSameForAnyNumberOfThreads) {
  for (const PatternData& data :
       {test::Pile(700, 5.5, 3), test::TwoCliques(50, 30), test::Grid(40, 40),
        test::WithMixedSizes(test::Pile(250, 5.5, 4), 5, 30)}) {
    const BlockValues values = test::RandomValues(data, 4);
    const EliminationPlan plan = EliminationPlan::Make(data.pattern());
    const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 5);
    const Solution<double> serial = FactorAndSolve<double>(plan, values, rhs);
    const Solution<float> serial_float = FactorAndSolve<float>(plan, values, rhs);
    ASSERT_EQ(serial.status, DoubleStatus::kOk);
    ASSERT_EQ(serial_float.status, FloatStatus::kOk);
    for (const int num_threads : {1, 2, 3, 8}) {
      TaskArena arena(num_threads, Sharing::kAlways);
      for (int repetition = 0; repetition < 3; ++repetition) {
        EXPECT_EQ(FactorAndSolve<double>(plan, values, rhs, &arena).x, serial.x);
        EXPECT_EQ(FactorAndSolve<float>(plan, values, rhs, &arena).x, serial_float.x);
      }
    }
  }
}

// Several factorizations run concurrently in one arena and share its threads within each.
TEST(BlockCholeskyTest, FactorizationsNestInALoopOfTheSameArena) {
  const PatternData data = test::Pile(400, 5.5, 6);
  const BlockValues values = test::RandomValues(data, 4);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 5);
  const Solution<double> serial = FactorAndSolve<double>(plan, values, rhs);
  TaskArena arena(3, Sharing::kAlways);
  std::vector<Solution<double>> solutions(6);
  arena.ParallelFor(
      6, [&](int i) { solutions[i] = FactorAndSolve<double>(plan, values, rhs, &arena); });
  for (const Solution<double>& solution : solutions) EXPECT_EQ(solution.x, serial.x);
}

// Also for odd powers, whose square root is not a floating-point number.
TEST(BlockCholeskyTest, ScalingByAPowerOfTwoScalesTheSolutionBitForBit) {
  const PatternData data = test::Pile(60, 5.5, 3);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  const BlockValues values = test::RandomValues(data, 4);
  const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 5);
  const Solution<double> expected = FactorAndSolve<double>(plan, values, rhs);
  const Solution<float> expected_float = FactorAndSolve<float>(plan, values, rhs);
  for (const int exponent : {1, -1, 20, -20, 333, -333}) {
    const double scale = std::ldexp(1.0, exponent);
    BlockValues scaled = values;
    for (double& value : scaled.diagonal) value *= scale;
    for (double& value : scaled.off_diagonal) value *= scale;
    EXPECT_EQ(FactorAndSolve<double>(plan, scaled, rhs).x * scale, expected.x);
    EXPECT_EQ(FactorAndSolve<float>(plan, scaled, rhs).x * scale, expected_float.x);
    EXPECT_EQ(FactorAndSolve<float>(plan, values, rhs * scale).x, expected_float.x * scale);
  }
}

TEST(BlockCholeskyTest, RefusesMatricesThatAreNotPositiveDefinite) {
  const PatternData data = test::WithMixedSizes(test::RandomGraph(25, 50, 1), 1, 12);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  const BlockValues good = test::RandomValues(data, 2);
  const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 3);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int block = 0; block < plan.num_blocks(); ++block) {
    const int size = data.block_size[block];
    const int64_t last = plan.diagonal_start()[block] + size * size - 1;
    for (const double pivot : {-1.0, 0.0, nan, infinity, -infinity}) {
      BlockValues bad = good;
      bad.diagonal[last] = pivot;
      EXPECT_EQ(FactorAndSolve<double>(plan, bad, rhs).status, DoubleStatus::kNotPositiveDefinite);
      EXPECT_EQ(FactorAndSolve<float>(plan, bad, rhs).status, FloatStatus::kNotPositiveDefinite);
    }
  }
  for (const double entry : {1e6, -1e6, nan, infinity, -infinity}) {
    for (size_t k = 0; k < good.off_diagonal.size(); k += 37) {
      BlockValues bad = good;
      bad.off_diagonal[k] = entry;
      EXPECT_EQ(FactorAndSolve<double>(plan, bad, rhs).status, DoubleStatus::kNotPositiveDefinite);
    }
  }
  EXPECT_EQ(FactorAndSolve<double>(plan, good, rhs).status, DoubleStatus::kOk);
}

TEST(BlockCholeskyTest, RefusesAnIndefiniteMatrixOnThreadsToo) {
  const PatternData data = test::Pile(700, 5.5, 3);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  BlockValues values = test::RandomValues(data, 2);
  const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 3);
  TaskArena arena(3, Sharing::kAlways);
  for (const int block : {plan.order().front(), plan.order().back()}) {
    BlockValues bad = values;
    bad.diagonal[plan.diagonal_start()[block]] = -1.0;
    EXPECT_EQ(FactorAndSolve<double>(plan, bad, rhs, &arena).status,
              DoubleStatus::kNotPositiveDefinite);
  }
}

TEST(BlockCholeskyTest, StopsAtItsTokenAndWorksAgainAfterwards) {
  const PatternData data = test::Pile(300, 5.5, 3);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  const BlockValues values = test::RandomValues(data, 2);
  const std::atomic<bool> cancelled{true};
  const StopToken cancellation(&cancelled, StopToken::Clock::time_point::max());
  const StopToken deadline(nullptr, StopToken::Clock::now());
  TaskArena arena(2, Sharing::kAlways);
  BlockCholesky<double> cholesky;
  for (TaskArena* threads : {static_cast<TaskArena*>(nullptr), &arena}) {
    for (const StopToken& stop : {cancellation, deadline}) {
      EXPECT_EQ(cholesky.Factor(plan, values.diagonal, values.off_diagonal, stop, threads),
                DoubleStatus::kStopped);
    }
    EXPECT_EQ(cholesky.Factor(plan, values.diagonal, values.off_diagonal, StopToken(), threads),
              DoubleStatus::kOk);
    std::vector<double> x(plan.num_rows(), 1.0);
    EXPECT_FALSE(cholesky.Solve(plan, x, x, cancellation, threads));
    EXPECT_TRUE(cholesky.Solve(plan, x, x, StopToken(), threads));
  }
}

// One object serves patterns of all sizes, with the same bits as a new one.
TEST(BlockCholeskyTest, SolutionsDoNotDependOnPatternsFactoredBefore) {
  BlockCholesky<double> reused;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const EliminationPlan plan = EliminationPlan::Make(c.data.pattern());
    const BlockValues values = test::RandomValues(c.data, 7);
    const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 8);
    const Solution<double> fresh = FactorAndSolve<double>(plan, values, rhs);
    ASSERT_EQ(reused.Factor(plan, values.diagonal, values.off_diagonal, StopToken(), nullptr),
              DoubleStatus::kOk);
    Eigen::VectorXd x(rhs.size());
    EXPECT_TRUE(reused.Solve(plan, {rhs.data(), static_cast<size_t>(rhs.size())},
                             {x.data(), static_cast<size_t>(x.size())}, StopToken(), nullptr));
    EXPECT_EQ(x, fresh.x);
  }
}

// Blocks differ by ten orders of magnitude, as those of light and heavy bodies in contact do.
TEST(BlockCholeskyTest, SolvesBadlyScaledBlocks) {
  const PatternData data = test::Pile(80, 5.5, 9);
  BlockValues values = test::RandomValues(data, 2);
  const auto scale = [](int block) { return std::pow(10.0, block % 6 - 3); };
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  for (int i = 0; i < plan.num_blocks(); ++i) {
    for (int64_t k = plan.diagonal_start()[i]; k < plan.diagonal_start()[i + 1]; ++k) {
      values.diagonal[k] *= scale(i) * scale(i);
    }
  }
  for (size_t e = 0; e < data.edge_a.size(); ++e) {
    const double factor = scale(data.edge_a[e]) * scale(data.edge_b[e]);
    for (int64_t k = plan.off_diagonal_start()[e]; k < plan.off_diagonal_start()[e + 1]; ++k) {
      values.off_diagonal[k] *= factor;
    }
  }
  const Eigen::MatrixXd H = test::SparseMatrix(data, values);
  const Eigen::VectorXd rhs = test::RandomVector(plan.num_rows(), 3);
  const Solution<double> solution = FactorAndSolve<double>(plan, values, rhs);
  ASSERT_EQ(solution.status, DoubleStatus::kOk);
  // Scaling changes units only, so every block is as accurate as without it.
  const Eigen::VectorXd expected = H.llt().solve(rhs);
  for (int i = 0; i < plan.num_blocks(); ++i) {
    EXPECT_LE((solution.x - expected).segment<6>(6 * i).norm(),
              1e-9 * expected.segment<6>(6 * i).norm());
  }
}

}  // namespace
}  // namespace sap
