#include "client/c/drake/dynamics.h"

#include <gtest/gtest.h>

#include "tests/client/c/drake/sample_plant.h"

namespace sap::drake {
namespace {

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

class DrakeDynamicsTest : public testing::Test {
 protected:
  DrakeDynamicsTest() {
    constexpr int n = SamplePlant::kVelocities;
    Numbers numbers(1);
    const Eigen::MatrixXd root = numbers.Matrix(n, n);
    mass_ = root * root.transpose() + Eigen::MatrixXd::Identity(n, n);
    damping_ = numbers.Vector(n).cwiseAbs();
    v_0_ = numbers.Vector(n);
    force_ = numbers.Vector(n);
    blocks_.resize(36 + 9 + 36);
    v_star_.resize(SamplePlant::kProblemVelocities);
    diagonal_.resize(SamplePlant::kProblemVelocities);
    WriteDynamics(plant_.View(), {mass_.data(), damping_.data(), v_0_.data(), force_.data()},
                  blocks_.data(), v_star_.data(), diagonal_.data());
  }

  // M + dt D between the velocities of a tree.
  Eigen::MatrixXd ExpectedBlock(size_t tree) const {
    const int64_t first = plant_.first()[tree];
    const int64_t n = plant_.first()[tree + 1] - first;
    return Eigen::MatrixXd::NullaryExpr(n, n, [&](int64_t i, int64_t j) {
      const int64_t row = plant_.order()[static_cast<size_t>(first + i)];
      const int64_t column = plant_.order()[static_cast<size_t>(first + j)];
      return mass_(row, column) + (i == j ? 0.01 * damping_[row] : 0.0);
    });
  }

  Eigen::Map<const RowMajorMatrix> Block(size_t tree) const {
    const int64_t n = plant_.first()[tree + 1] - plant_.first()[tree];
    const int64_t starts[] = {0, 36, 45};
    return {blocks_.data() + starts[tree], n, n};
  }

  SamplePlant plant_;
  RowMajorMatrix mass_;
  Eigen::VectorXd damping_, v_0_, force_, blocks_, v_star_, diagonal_;
};

TEST_F(DrakeDynamicsTest, BlocksAreMassAndDampingOfEachTree) {
  for (size_t tree = 0; tree < 3; ++tree) {
    EXPECT_LT((Block(tree) - ExpectedBlock(tree)).norm(), 1e-14) << "tree " << tree;
  }
}

TEST_F(DrakeDynamicsTest, DiagonalIsThatOfTheBlocks) {
  for (size_t tree = 0; tree < 3; ++tree) {
    const int64_t n = Block(tree).rows();
    EXPECT_EQ(diagonal_.segment(plant_.first()[tree], n), Block(tree).diagonal());
  }
}

TEST_F(DrakeDynamicsTest, FreeMotionHasTheMomentumOfTheForces) {
  const Eigen::VectorXd change = v_star_ - plant_.InProblem(v_0_);
  const Eigen::VectorXd impulse = 0.01 * plant_.InProblem(force_);
  for (size_t tree = 0; tree < 3; ++tree) {
    const int64_t first = plant_.first()[tree];
    const int64_t n = Block(tree).rows();
    const Eigen::VectorXd momentum = Block(tree) * change.segment(first, n);
    EXPECT_LT((momentum - impulse.segment(first, n)).norm(), 1e-12) << "tree " << tree;
  }
}

}  // namespace
}  // namespace sap::drake
