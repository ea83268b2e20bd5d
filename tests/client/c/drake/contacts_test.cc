#include "client/c/drake/contacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/client/c/drake/sample_plant.h"

namespace sap::drake {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using RowMajor3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
using Axes = Eigen::Matrix<double, 6, SamplePlant::kVelocities, Eigen::RowMajor>;

// Contacts between every kind of bodies in a random state.
class DrakeContactsTest : public testing::Test {
 protected:
  static constexpr int kContacts = 7;
  static constexpr int kParameters = 8;
  static constexpr int kLine = 3 + 6 * SamplePlant::kVelocities;
  static constexpr int32_t kBodies[2 * kContacts] = {
      SamplePlant::kFloor,    SamplePlant::kBox,      SamplePlant::kBox,   SamplePlant::kUpperArm,
      SamplePlant::kUpperArm, SamplePlant::kLowerArm, SamplePlant::kBall,  SamplePlant::kBox,
      SamplePlant::kLowerArm, SamplePlant::kFloor,    SamplePlant::kFloor, SamplePlant::kBall,
      SamplePlant::kLowerArm, SamplePlant::kBall};

  DrakeContactsTest() {
    v_0_[8] = v_0_[16] = 0.0;  // locked
    for (sap_drake_point& point : points_) point = RandomPoint();
    points_[5].normal[0] = 1.0;  // along the x axis
    points_[5].normal[1] = points_[5].normal[2] = 0.0;
    const std::vector<int64_t> with_jacobians = {SamplePlant::kUpperArm, SamplePlant::kLowerArm};
    const int64_t values = MeasureContacts(plant_.View(), contacts(), needs_jacobian_.data());
    jacobian_.resize(static_cast<size_t>(values));
    WriteContacts(plant_.View(), contacts(),
                  {diagonal_.data(), position_.data(), v_0_.data(),
                   static_cast<int64_t>(with_jacobians.size()), with_jacobians.data(),
                   body_jacobians_.data()},
                  Arrays());
  }

  ContactPoints contacts() const { return {kContacts, points_.data(), kBodies}; }

  sap_drake_point RandomPoint() {
    sap_drake_point point = {};
    Eigen::Map<Vector3d>(point.position) = numbers_.Vector(3);
    Eigen::Map<Vector3d>(point.normal) = numbers_.Vector(3).normalized();
    const Eigen::VectorXd others = numbers_.Vector(5);
    point.signed_distance = others[0];
    point.stiffness = std::abs(others[1]);
    point.relaxation_time = others[2];
    point.friction = others[3];
    point.dissipation = std::abs(others[4]);
    return point;
  }

  ContactArrays Arrays() {
    const auto parameter = [&](int i) { return parameters_.data() + i * kContacts; };
    return {.tree_a = tree_a_.data(),
            .tree_b = tree_b_.data(),
            .jacobian = jacobian_.data(),
            .signed_distance = parameter(0),
            .stiffness = parameter(1),
            .relaxation_time = parameter(2),
            .friction = parameter(3),
            .delassus_estimate = parameter(4),
            .elastic_force = parameter(5),
            .dissipation = parameter(6),
            .lagged_normal_impulse = parameter(7),
            .frames = frames_.data()};
  }

  double Parameter(int number, int contact) const {
    return parameters_[number * kContacts + contact];
  }
  Matrix3d Frame(int contact) const {
    return Eigen::Map<const RowMajor3>(frames_.data() + 9 * contact);
  }
  Eigen::MatrixXd DenseJ() const {
    return DenseJacobian(plant_, tree_a_, tree_b_, jacobian_.data());
  }

  // Velocity of a point of a body.
  Vector3d VelocityAt(int32_t body, const Vector3d& point, const Eigen::VectorXd& v) const {
    if (plant_.TreeOf(body) < 0) return Vector3d::Zero();
    Vector3d origin;
    Eigen::Matrix<double, 6, 1> spatial;
    if (plant_.PositionOfFree(body) >= 0) {
      origin = position_.segment(plant_.PositionOfFree(body), 3);
      const int64_t first = plant_.first()[static_cast<size_t>(plant_.TreeOf(body))];
      spatial = v.segment(plant_.order()[static_cast<size_t>(first)], 6);
    } else {
      const double* line = body_jacobians_.data() + (body - SamplePlant::kUpperArm) * kLine;
      origin = Eigen::Map<const Vector3d>(line);
      spatial = Eigen::Map<const Axes>(line + 3) * v;
    }
    return spatial.tail<3>() + spatial.head<3>().cross(point - origin);
  }

  // Velocity of B relative to A in the frame of a contact.
  Vector3d RelativeVelocity(int contact, const Eigen::VectorXd& v) const {
    const Vector3d point =
        Eigen::Map<const Vector3d>(points_[static_cast<size_t>(contact)].position);
    return Frame(contact) * (VelocityAt(kBodies[2 * contact + 1], point, v) -
                             VelocityAt(kBodies[2 * contact], point, v));
  }

  // Jacobians of the arm's links, which move with the velocities 0, 1 and 9 of the plant.
  Eigen::VectorXd RandomBodyJacobians() {
    Eigen::VectorXd lines = numbers_.Vector(2 * kLine);
    for (int link = 0; link < 2; ++link) {
      Eigen::Map<Axes> axes(lines.data() + link * kLine + 3);
      for (int v = 0; v < SamplePlant::kVelocities; ++v) {
        if (v != 0 && v != 1 && v != 9) axes.col(v).setZero();
      }
    }
    return lines;
  }

  SamplePlant plant_;
  Numbers numbers_{3};
  std::vector<sap_drake_point> points_{kContacts};
  Eigen::VectorXd diagonal_ = numbers_.Vector(SamplePlant::kProblemVelocities).cwiseAbs();
  Eigen::VectorXd position_ = numbers_.Vector(SamplePlant::kPositions);
  Eigen::VectorXd v_0_ = numbers_.Vector(SamplePlant::kVelocities);
  Eigen::VectorXd body_jacobians_ = RandomBodyJacobians();
  std::vector<uint8_t> needs_jacobian_ = std::vector<uint8_t>(SamplePlant::kBodies);
  std::vector<int32_t> tree_a_ = std::vector<int32_t>(kContacts);
  std::vector<int32_t> tree_b_ = std::vector<int32_t>(kContacts);
  std::vector<double> jacobian_;
  Eigen::VectorXd parameters_ = Eigen::VectorXd::Zero(kParameters * kContacts);
  Eigen::VectorXd frames_ = Eigen::VectorXd::Zero(9 * kContacts);
};

TEST_F(DrakeContactsTest, BlocksAreOfTheTreesThatMove) {
  EXPECT_THAT(tree_a_, testing::ElementsAre(0, 0, 1, 2, 1, 2, 1));
  EXPECT_THAT(tree_b_, testing::ElementsAre(-1, 1, -1, 0, -1, -1, 2));
  EXPECT_EQ(jacobian_.size(), 3U * (6 + 9 + 3 + 12 + 3 + 6 + 9));
}

TEST_F(DrakeContactsTest, JacobiansAreNeededOfBodiesThatMoveAndAreNotFree) {
  EXPECT_THAT(needs_jacobian_, testing::ElementsAre(0, 0, 1, 1, 0));
}

TEST_F(DrakeContactsTest, FramesAreRightHandedWithTheNormalAsTheThirdAxis) {
  for (int i = 0; i < kContacts; ++i) {
    const Matrix3d frame = Frame(i);
    EXPECT_LT((frame * frame.transpose() - Matrix3d::Identity()).norm(), 1e-15) << "contact " << i;
    EXPECT_GT(frame.determinant(), 0.0) << "contact " << i;
    EXPECT_EQ(frame.row(2).transpose(),
              Eigen::Map<const Vector3d>(points_[static_cast<size_t>(i)].normal));
  }
}

TEST_F(DrakeContactsTest, JacobianGivesTheVelocityOfBodyBRelativeToBodyA) {
  const Eigen::VectorXd v_c = DenseJ() * plant_.InProblem(v_0_);
  for (int i = 0; i < kContacts; ++i) {
    EXPECT_LT((v_c.segment<3>(3 * i) - RelativeVelocity(i, v_0_)).norm(), 1e-13) << "contact " << i;
  }
}

TEST_F(DrakeContactsTest, EstimateIsTheNormOfTheDelassusMatrixWithTheDiagonalOfA) {
  const Eigen::MatrixXd W = DenseJ() * diagonal_.cwiseInverse().asDiagonal() * DenseJ().transpose();
  for (int i = 0; i < kContacts; ++i) {
    const double expected = W.block<3, 3>(3 * i, 3 * i).norm() / 3.0;
    EXPECT_NEAR(Parameter(4, i), expected, 1e-13 * expected) << "contact " << i;
  }
}

TEST_F(DrakeContactsTest, ForcesOfHuntAndCrossleyAreThoseAtTheBeginning) {
  int pushing = 0;
  for (int i = 0; i < kContacts; ++i) {
    const sap_drake_point& point = points_[static_cast<size_t>(i)];
    const double force = -point.stiffness * point.signed_distance;
    EXPECT_EQ(Parameter(5, i), force);
    EXPECT_EQ(Parameter(6, i), point.dissipation);
    // A spring does not pull, and neither does a damper.
    const double damped = 1.0 - point.dissipation * RelativeVelocity(i, v_0_)[2];
    const double impulse = force > 0.0 && damped > 0.0 ? 0.01 * force * damped : 0.0;
    EXPECT_NEAR(Parameter(7, i), impulse, 1e-15) << "contact " << i;
    pushing += impulse > 0.0;
  }
  EXPECT_GT(pushing, 0);
  EXPECT_LT(pushing, kContacts);
}

TEST_F(DrakeContactsTest, ParametersOfPointsAreTaken) {
  for (int i = 0; i < kContacts; ++i) {
    const sap_drake_point& point = points_[static_cast<size_t>(i)];
    EXPECT_EQ(Parameter(0, i), point.signed_distance);
    EXPECT_EQ(Parameter(1, i), point.stiffness);
    EXPECT_EQ(Parameter(2, i), point.relaxation_time);
    EXPECT_EQ(Parameter(3, i), point.friction);
  }
}

}  // namespace
}  // namespace sap::drake
