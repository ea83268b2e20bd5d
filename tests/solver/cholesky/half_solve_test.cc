#include "solver/cholesky/half_solve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "tests/solver/cholesky/block_systems.h"

namespace sap::test {
namespace {

struct Factored {
  Factored(const PatternData& data, unsigned seed)
      : values(RandomValues(data, seed)), plan(EliminationPlan::Make(data.pattern())) {
    EXPECT_EQ(cholesky.Factor(plan, values.diagonal, values.off_diagonal, StopToken(), nullptr),
              BlockCholesky<double>::FactorStatus::kOk);
    places.Find(plan);
  }
  HalfSolveFactor factor() const { return {plan, places, cholesky}; }

  BlockValues values;
  EliminationPlan plan;
  BlockPlaces places;
  BlockCholesky<double> cholesky;
};

const PatternData kPatterns[] = {Blocks(1, 1),  Chain(9, 3),  Star(12, 4, 2),
                                 Grid(7, 6, 3), Clique(5, 7), Grid(20, 15, 6)};
constexpr unsigned kSeed = 5;

// Dense factors of kPatterns with values of kSeed, made once: under sanitizers they take most of
// the time of a test.
const Eigen::LLT<Eigen::MatrixXd>& DenseFactorOf(const PatternData& data) {
  static std::map<const PatternData*, Eigen::LLT<Eigen::MatrixXd>> factors;
  const auto [at, is_new] = factors.try_emplace(&data);
  if (is_new) at->second.compute(Eigen::MatrixXd(SparseMatrix(data, RandomValues(data, kSeed))));
  return at->second;
}

// Y'Y of the right-hand sides in the given blocks.
Eigen::Matrix4d Product(const Factored& of, const std::vector<int>& blocks,
                        const Eigen::MatrixXd& B, HalfSolve* solve) {
  solve->Start(of.plan);
  for (const int block : blocks) {
    Lanes4* rows = solve->rows(of.factor(), block);
    const int begin = of.plan.block_row_start()[block];
    for (int i = begin; i < of.plan.block_row_start()[block + 1]; ++i) {
      for (int lane = 0; lane < 4; ++lane) rows[i - begin][lane] += B(i, lane);
    }
  }
  solve->Run(of.factor(), StopToken());
  Eigen::Matrix4d product = Eigen::Matrix4d::Zero();
  solve->ForRows(of.plan, [&](const Lanes4& y) {
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) product(r, c) += y[r] * y[c];
    }
  });
  return product * of.cholesky.scale();
}

TEST(HalfSolveTest, ProductsOfItsSolutionsAreThoseWithTheInverse) {
  HalfSolve solve;
  for (const PatternData& data : kPatterns) {
    const Factored of(data, kSeed);
    const Eigen::LLT<Eigen::MatrixXd>& exact = DenseFactorOf(data);
    const int last = data.num_blocks() - 1;
    for (const std::vector<int>& blocks :
         {std::vector<int>{0}, {last}, {last / 2, 0}, {last, last / 3, last}}) {
      Eigen::MatrixXd B = Eigen::MatrixXd::Zero(of.plan.num_rows(), 4);
      for (const int block : blocks) {
        const int begin = of.plan.block_row_start()[block];
        for (int lane = 0; lane < 4; ++lane) {
          B.col(lane).segment(begin, data.block_size[block]) =
              RandomVector(data.block_size[block], block + 7 * lane);
        }
      }
      // Blocks that are named twice are added to twice.
      Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(of.plan.num_rows(), 4);
      for (const int block : blocks) {
        const int begin = of.plan.block_row_start()[block];
        sum.middleRows(begin, data.block_size[block]) +=
            B.middleRows(begin, data.block_size[block]);
      }
      const Eigen::Matrix4d expected = sum.transpose() * exact.solve(sum);
      const Eigen::Matrix4d product = Product(of, blocks, B, &solve);
      EXPECT_LE((product - expected).norm(), 1e-12 * expected.norm());
    }
  }
}

TEST(HalfSolveTest, ColumnsHaveTheBitsThatEachHasAlone) {
  constexpr int kColumns = 3;  // of each of four blocks
  HalfSolve solve;
  HalfSolves<3> solves;
  for (const PatternData& data : kPatterns) {
    const Factored of(data, kSeed);
    const int last = data.num_blocks() - 1;
    const int blocks[] = {0, last / 2, last, last / 3};
    const auto add = [&](int number, int column, int groups, Lanes4* rows) {
      for (int i = 0; i < data.block_size[blocks[number]]; ++i, rows += groups) {
        const Eigen::VectorXd b = RandomVector(kColumns, 17 * number + i);
        for (int k = 0; k < kColumns; ++k) rows[(column + k) / 4][(column + k) % 4] += b[k];
      }
    };
    solves.Start(of.plan);
    for (int number = 0; number < 4; ++number) {
      add(number, kColumns * number, 3, solves.rows(of.factor(), blocks[number]));
    }
    solves.Run(of.factor(), StopToken());
    for (int number = 0; number < 4; ++number) {
      solve.Start(of.plan);
      add(number, 0, 1, solve.rows(of.factor(), blocks[number]));
      solve.Run(of.factor(), StopToken());
      Lanes4 alone{};
      Lanes4 together{};
      solve.ForRows(of.plan, [&](const Lanes4& y) { alone += y * y; });
      solves.ForRows(of.plan, kColumns * number, [&](const Lanes4& y) { together += y * y; });
      for (int k = 0; k < kColumns; ++k) EXPECT_EQ(alone[k], together[k]);
    }
  }
}

TEST(HalfSolveTest, BackItSolvesForTheBlocksAlongThePathsOrForAll) {
  HalfSolve solve;
  for (const PatternData& data : kPatterns) {
    const Factored of(data, kSeed);
    const Eigen::LLT<Eigen::MatrixXd>& exact = DenseFactorOf(data);
    for (const int block : {0, data.num_blocks() / 2, data.num_blocks() - 1}) {
      Eigen::MatrixXd B = Eigen::MatrixXd::Zero(of.plan.num_rows(), 4);
      for (int lane = 0; lane < 4; ++lane) {
        B.col(lane).segment(of.plan.block_row_start()[block], data.block_size[block]) =
            RandomVector(data.block_size[block], block + 7 * lane);
      }
      const Eigen::MatrixXd expected = exact.solve(B);
      const auto error_of = [&](int other) {
        double error = 0;
        const Lanes4* x = solve.solution(of.factor(), other);
        for (int i = 0; i < data.block_size[other]; ++i) {
          for (int lane = 0; lane < 4; ++lane) {
            const double value = x[i][lane] * of.cholesky.scale();
            error = std::max(
                error, std::abs(value - expected(of.plan.block_row_start()[other] + i, lane)));
          }
        }
        return error;
      };
      const double tolerance = 1e-12 * expected.norm();
      Product(of, {block}, B, &solve);
      solve.RunBack(of.factor(), HalfSolve::Fronts::kVisited, StopToken());
      EXPECT_LE(error_of(block), tolerance);
      Product(of, {block}, B, &solve);
      solve.RunBack(of.factor(), HalfSolve::Fronts::kAll, StopToken());
      for (int other = 0; other < data.num_blocks(); ++other) {
        EXPECT_LE(error_of(other), tolerance);
      }
    }
  }
}

TEST(HalfSolveTest, ProductsAreThoseOfAMatrixScaledByAPowerOfTwo) {
  const PatternData data = Grid(5, 5, 3);
  Factored of(data, 3);
  Factored scaled(data, 3);
  for (std::vector<double>* values : {&scaled.values.diagonal, &scaled.values.off_diagonal}) {
    for (double& value : *values) value *= 0x1p37;
  }
  ASSERT_EQ(scaled.cholesky.Factor(scaled.plan, scaled.values.diagonal, scaled.values.off_diagonal,
                                   StopToken(), nullptr),
            BlockCholesky<double>::FactorStatus::kOk);
  Eigen::MatrixXd B = Eigen::MatrixXd::Zero(of.plan.num_rows(), 4);
  B.col(1).head(3) = RandomVector(3, 1);
  HalfSolve solve;
  EXPECT_EQ(Product(of, {0}, B, &solve), 0x1p37 * Product(scaled, {0}, B, &solve));
}

}  // namespace
}  // namespace sap::test
