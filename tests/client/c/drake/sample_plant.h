// A plant of two free bodies and an arm, whose velocities have another order than in the problem.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <random>
#include <vector>

#include "client/c/drake/python_calls.h"

namespace sap::drake {

class SamplePlant {
 public:
  static constexpr int32_t kFloor = 0, kBox = 1, kUpperArm = 2, kLowerArm = 3, kBall = 4;
  static constexpr int kBodies = 5;
  static constexpr int kVelocities = 17;         // of the plant; 8 and 16 are locked
  static constexpr int kProblemVelocities = 15;  // box, arm, ball
  static constexpr int kPositions = 20;

  SamplePlant() = default;
  SamplePlant(const SamplePlant&) = delete;

  sap_drake_plant View() const {
    return {.time_step = 0.01,
            .trees = 3,
            .velocities = kVelocities,
            .first = first_.data(),
            .order = order_.data(),
            .tree_of_body = tree_of_body_.data(),
            .position_of_free = position_of_free_.data()};
  }

  const std::vector<int64_t>& first() const { return first_; }
  const std::vector<int64_t>& order() const { return order_; }
  int32_t TreeOf(int32_t body) const { return tree_of_body_[static_cast<size_t>(body)]; }
  int64_t PositionOfFree(int32_t body) const {
    return position_of_free_[static_cast<size_t>(body)];
  }

  // The part of a vector [nv] that is in the problem, in its order.
  Eigen::VectorXd InProblem(const Eigen::VectorXd& v) const {
    Eigen::VectorXd part(kProblemVelocities);
    for (int i = 0; i < kProblemVelocities; ++i) part[i] = v[order_[static_cast<size_t>(i)]];
    return part;
  }

 private:
  std::vector<int64_t> first_ = {0, 6, 9, 15};
  std::vector<int64_t> order_ = {2, 3, 4, 5, 6, 7, 0, 1, 9, 10, 11, 12, 13, 14, 15};
  std::vector<int32_t> tree_of_body_ = {-1, 0, 1, 1, 2};
  std::vector<int64_t> position_of_free_ = {-1, 6, -1, -1, 16};
};

// Independent standard normal numbers.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : generator_(seed) {}

  Eigen::VectorXd Vector(int size) {
    return Eigen::VectorXd::NullaryExpr(size, [&] { return normal_(generator_); });
  }
  Eigen::MatrixXd Matrix(int rows, int columns) {
    return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return normal_(generator_); });
  }

 private:
  std::mt19937 generator_;
  std::normal_distribution<double> normal_;
};

// J [3 C, n] of contacts between the trees.
inline Eigen::MatrixXd DenseJacobian(const SamplePlant& plant, const std::vector<int32_t>& tree_a,
                                     const std::vector<int32_t>& tree_b, const double* values) {
  const auto contacts = static_cast<int64_t>(tree_a.size());
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(3 * contacts, SamplePlant::kProblemVelocities);
  for (int64_t i = 0; i < contacts; ++i) {
    for (const int32_t tree : {tree_a[static_cast<size_t>(i)], tree_b[static_cast<size_t>(i)]}) {
      if (tree < 0) continue;
      const int64_t first = plant.first()[static_cast<size_t>(tree)];
      const int64_t size = plant.first()[static_cast<size_t>(tree) + 1] - first;
      using Block = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor>;
      J.block(3 * i, first, 3, size) = Eigen::Map<const Block>(values, 3, size);
      values += 3 * size;
    }
  }
  return J;
}

}  // namespace sap::drake
