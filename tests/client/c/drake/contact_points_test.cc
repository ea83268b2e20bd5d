#include "client/c/drake/contact_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/client/c/drake/sample_plant.h"

namespace sap::drake {
namespace {

using Eigen::Vector3d;

constexpr double kRigid = std::numeric_limits<double>::infinity();
constexpr double kArea = 0.02, kPressure = 300.0;
constexpr double kGradientM = 4e4, kGradientN = 1e4;  // along the normal

// Materials of the floor, compliant and rigid, and of the box and the ball.
enum Geometry : int64_t { kFloorGeometry, kRigidFloor, kBoxGeometry, kBallGeometry };

class ContactPointsTest : public testing::Test {
 protected:
  void AddPair(int64_t a, int64_t b) {
    const int64_t geometries[] = {a, b};
    writer_.AddPairs({1, geometries, &kDepth, normal_.data(), on_b_.data()});
  }

  // A surface of one face in a plane, between fields of pressure that rise along the normal into M
  // and against it into N.
  void AddFace(int64_t m, int64_t n, bool has_m, bool has_n, double area = kArea) {
    const int64_t geometries[] = {m, n};
    const int64_t faces = 1;
    const uint8_t has_gradient[] = {has_m, has_n};
    const Vector3d gradient_m = kGradientM * normal_;
    const Vector3d gradient_n = -kGradientN * normal_;
    writer_.AddFaces({.count = 1,
                      .geometries = geometries,
                      .faces = &faces,
                      .has_gradient = has_gradient,
                      .area = &area,
                      .pressure = &kPressure,
                      .position = on_b_.data(),
                      .normal = normal_.data(),
                      .gradient_m = gradient_m.data(),
                      .gradient_n = gradient_n.data()});
  }

  Vector3d Position(size_t i) const { return Eigen::Map<const Vector3d>(points_[i].position); }
  Vector3d Normal(size_t i) const { return Eigen::Map<const Vector3d>(points_[i].normal); }

  static constexpr double kDepth = 0.003;

  SamplePlant sample_;
  sap_drake_plant plant_ = sample_.View();
  Vector3d normal_ = Vector3d(1.0, 2.0, -2.0) / 3.0;  // from B to A, from N to M
  Vector3d on_b_ = Vector3d(0.3, -0.1, 0.7);
  std::vector<sap_drake_material> materials_ = {
      {SamplePlant::kFloor, 3e5, 0.1, 0.5, 2.0, 1e7},
      {SamplePlant::kFloor, kRigid, 0.1, 0.5, 2.0, kRigid},
      {SamplePlant::kBox, 1e5, 0.02, 0.25, 6.0, 3e7},
      {SamplePlant::kBall, kRigid, 0.0, 0.0, 4.0, kRigid}};
  std::vector<sap_drake_point> points_{8};
  std::vector<int32_t> bodies_ = std::vector<int32_t>(16);
  PointWriter writer_{plant_, materials_.data(), points_.data(), bodies_.data()};
};

TEST_F(ContactPointsTest, BothGeometriesOfAPairPressWithTheSameForceAtThePoint) {
  AddPair(kFloorGeometry, kBoxGeometry);
  ASSERT_EQ(writer_.count(), 1);
  const double into_b = (on_b_ - Position(0)).dot(normal_);
  EXPECT_LT((on_b_ - into_b * normal_ - Position(0)).norm(), 1e-15);
  const double force = -points_[0].stiffness * points_[0].signed_distance;
  EXPECT_NEAR(force, 1e5 * into_b, 1e-9);
  EXPECT_NEAR(force, 3e5 * (kDepth - into_b), 1e-9);
  EXPECT_EQ(Normal(0), -normal_);
}

TEST_F(ContactPointsTest, ARigidGeometryIsNotEntered) {
  AddPair(kRigidFloor, kBoxGeometry);
  AddPair(kBoxGeometry, kRigidFloor);
  EXPECT_LT((Position(0) - (on_b_ - kDepth * normal_)).norm(), 1e-15);  // on the surface of A
  EXPECT_EQ(Position(1), on_b_);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(points_[i].stiffness, 1e5);
    EXPECT_EQ(points_[i].dissipation, 6.0);
  }
}

// The laws that Drake documents for pairs of materials.
TEST_F(ContactPointsTest, MaterialsAreCombinedAsInDrake) {
  AddPair(kFloorGeometry, kBoxGeometry);
  EXPECT_DOUBLE_EQ(points_[0].friction, 2.0 * 0.5 * 0.25 / (0.5 + 0.25));
  EXPECT_DOUBLE_EQ(points_[0].relaxation_time, 0.12);
  EXPECT_DOUBLE_EQ(points_[0].dissipation, 0.25 * 2.0 + 0.75 * 6.0);
  AddPair(kBallGeometry, kBallGeometry);
  EXPECT_EQ(points_[1].friction, 0.0);
}

TEST_F(ContactPointsTest, PointsBetweenFixedBodiesAreLeftOut) {
  AddPair(kFloorGeometry, kRigidFloor);
  AddPair(kBoxGeometry, kFloorGeometry);
  ASSERT_EQ(writer_.count(), 1);
  EXPECT_EQ(bodies_[0], SamplePlant::kBox);
  EXPECT_EQ(bodies_[1], SamplePlant::kFloor);
}

TEST_F(ContactPointsTest, ForceOfAFaceIsItsPressureTimesItsArea) {
  AddFace(kBoxGeometry, kFloorGeometry, true, true);
  AddFace(kBoxGeometry, kRigidFloor, true, false);
  AddFace(kRigidFloor, kBoxGeometry, false, true);
  ASSERT_EQ(writer_.count(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(-points_[i].stiffness * points_[i].signed_distance, kPressure * kArea, 1e-12);
    EXPECT_LT((Normal(i) + normal_).norm(), 1e-15);
    EXPECT_EQ(Position(i), on_b_);
  }
}

TEST_F(ContactPointsTest, StiffnessOfAFaceIsTheChangeOfItsForce) {
  AddFace(kBoxGeometry, kFloorGeometry, true, true);
  AddFace(kBoxGeometry, kRigidFloor, true, false);
  AddFace(kRigidFloor, kBoxGeometry, false, true);
  // N moves by s into M. Both pressures are equal at x: p + g_m x = p + g_n (s - x).
  const double s = 1e-4;
  const double x = kGradientN * s / (kGradientM + kGradientN);
  EXPECT_NEAR(points_[0].stiffness * s, kGradientM * x * kArea, 1e-12);
  EXPECT_NEAR(points_[1].stiffness * s, kGradientM * s * kArea, 1e-12);
  EXPECT_NEAR(points_[2].stiffness * s, kGradientN * s * kArea, 1e-12);
}

TEST_F(ContactPointsTest, FacesWithoutAreaOrPressureGradientAreLeftOut) {
  AddFace(kBoxGeometry, kRigidFloor, true, false, 0.0);
  EXPECT_EQ(writer_.count(), 0);
  normal_ = Vector3d::Zero();  // the gradients vanish
  AddFace(kBoxGeometry, kFloorGeometry, true, true);
  EXPECT_EQ(writer_.count(), 0);
}

// Only faces of rigid geometries have a normal in the arrays, and only compliant ones a gradient.
TEST_F(ContactPointsTest, FacesOfManySurfacesTakeTheirOwnNormalsAndGradients) {
  const int64_t geometries[] = {kBoxGeometry, kBoxGeometry, kFloorGeometry, kRigidFloor};
  const int64_t faces[] = {1, 2};
  const uint8_t has_gradient[] = {1, 1, 1, 0};
  const double area[] = {1.0, 1.0, 1.0};
  const double pressure[] = {1.0, 1.0, 1.0};
  const double position[9] = {};
  const Vector3d x = Vector3d::UnitX(), y = Vector3d::UnitY(), z = Vector3d::UnitZ();
  Eigen::Matrix3d gradient_m;
  gradient_m << 2.0 * x, 3.0 * y, 4.0 * z;
  const Vector3d gradient_n = -2.0 * x;
  Eigen::Matrix<double, 3, 2> normal;
  normal << y, z;
  writer_.AddFaces({2, geometries, faces, has_gradient, area, pressure, position, normal.data(),
                    gradient_m.data(), gradient_n.data()});
  ASSERT_EQ(writer_.count(), 3);
  EXPECT_EQ(Normal(0), -x);
  EXPECT_EQ(Normal(1), -y);
  EXPECT_EQ(Normal(2), -z);
  EXPECT_THAT((std::vector{points_[0].stiffness, points_[1].stiffness, points_[2].stiffness}),
              testing::ElementsAre(1.0, 3.0, 4.0));
  EXPECT_THAT((std::vector{bodies_[1], bodies_[3]}), testing::Each(SamplePlant::kFloor));
}

}  // namespace
}  // namespace sap::drake
