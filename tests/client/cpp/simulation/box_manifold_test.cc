#include "client/cpp/simulation/box_manifold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sap::simulation {
namespace {

const Vector3d kCube(0.05, 0.05, 0.05);

OrientedBox Box(const Vector3d& center, const Vector3d& half_extent = kCube,
                const Matrix3d& axes = Matrix3d::Identity()) {
  return {center, axes, half_extent};
}

Matrix3d Turn(double angle, const Vector3d& axis) {
  return Eigen::AngleAxisd(angle, axis.normalized()).toRotationMatrix();
}

const ManifoldPoint kNoFallback{{100, 100, 100}, -100};

BoxManifold Manifold(const OrientedBox& a, const OrientedBox& b, const Vector3d& direction) {
  return FindBoxManifold(a, b, direction, kNoFallback);
}

// The corners as (x, y), sorted.
std::vector<std::pair<double, double>> Corners(const BoxManifold& manifold) {
  std::vector<std::pair<double, double>> corners;
  for (int i = 0; i < manifold.count; ++i) {
    corners.emplace_back(manifold.points[i].position.x(), manifold.points[i].position.y());
  }
  std::sort(corners.begin(), corners.end());
  return corners;
}

void ExpectCorners(const BoxManifold& manifold, std::vector<std::pair<double, double>> expected) {
  std::sort(expected.begin(), expected.end());
  const auto corners = Corners(manifold);
  ASSERT_EQ(corners.size(), expected.size());
  for (size_t i = 0; i < corners.size(); ++i) {
    EXPECT_NEAR(corners[i].first, expected[i].first, 1e-14);
    EXPECT_NEAR(corners[i].second, expected[i].second, 1e-14);
  }
}

void ExpectDistance(const BoxManifold& manifold, double phi0) {
  for (int i = 0; i < manifold.count; ++i) {
    EXPECT_NEAR(manifold.points[i].signed_distance, phi0, 1e-15);
  }
}

TEST(BoxManifoldTest, EqualBoxesOneOnTheOtherTouchInFourCorners) {
  const BoxManifold manifold = Manifold(Box({0, 0, 0.0999}), Box({0, 0, 0}), Vector3d::UnitZ());
  ExpectCorners(manifold, {{0.05, 0.05}, {0.05, -0.05}, {-0.05, 0.05}, {-0.05, -0.05}});
  ExpectDistance(manifold, -1e-4);
  EXPECT_EQ(manifold.normal, Vector3d::UnitZ());
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(manifold.points[i].position.z(), 0.04995, 1e-14);
}

TEST(BoxManifoldTest, OffsetBoxesTouchInTheCornersOfTheirCommonRectangle) {
  const BoxManifold manifold =
      Manifold(Box({0.03, -0.06, 0.0999}), Box({0, 0, 0}), Vector3d::UnitZ());
  ExpectCorners(manifold, {{0.05, -0.05}, {0.05, -0.01}, {-0.02, -0.05}, {-0.02, -0.01}});
  ExpectDistance(manifold, -1e-4);
}

TEST(BoxManifoldTest, ASmallFaceOnALargeOneKeepsItsOwnCorners) {
  const OrientedBox small = Box({0.1, 0.1, 0.0599}, {0.03, 0.02, 0.01});
  const OrientedBox large = Box({0, 0, 0}, {0.3, 0.3, 0.05});
  const std::vector<std::pair<double, double>> corners = {
      {0.07, 0.08}, {0.07, 0.12}, {0.13, 0.08}, {0.13, 0.12}};
  ExpectCorners(Manifold(small, large, Vector3d::UnitZ()), corners);
  ExpectCorners(Manifold(large, small, -Vector3d::UnitZ()), corners);
}

TEST(BoxManifoldTest, ABoxTurnedByAnEighthTouchesInTheEightCornersOfAnOctagon) {
  const BoxManifold manifold =
      Manifold(Box({0, 0, 0.0999}, kCube, Turn(EIGEN_PI / 4, Vector3d::UnitZ())), Box({0, 0, 0}),
               Vector3d::UnitZ());
  const double h = 0.05;
  const double t = h * std::tan(EIGEN_PI / 8);
  ExpectCorners(manifold, {{h, t}, {h, -t}, {-h, t}, {-h, -t}, {t, h}, {-t, h}, {t, -h}, {-t, -h}});
  ExpectDistance(manifold, -1e-4);
}

TEST(BoxManifoldTest, ASlightTurnDoesNotDoubleTheCorners) {
  for (const double angle : {1e-12, 1e-8, 1e-5, 1e-3}) {
    const BoxManifold manifold =
        Manifold(Box({1e-5, -2e-6, 0.0999}, kCube, Turn(angle, Vector3d::UnitZ())), Box({0, 0, 0}),
                 Vector3d::UnitZ());
    EXPECT_EQ(manifold.count, 4) << angle;
  }
}

TEST(BoxManifoldTest, ASlightTiltTouchesInTheCornersOfTheLowEdgeWithTheirDepths) {
  // A face whose right end is 1e-4 below and whose left end is above the one it lies on.
  const double tilt = 2e-3;
  const BoxManifold manifold =
      Manifold(Box({0, 0, -0.05}, {0.2, 0.2, 0.05}),
               Box({0, 0, 0.05}, kCube, Turn(tilt, Vector3d::UnitY())), -Vector3d::UnitZ());
  const double x = 0.05 * std::cos(tilt) - 0.05 * std::sin(tilt);
  const double phi0 = 0.05 - 0.05 * std::cos(tilt) - 0.05 * std::sin(tilt);
  ExpectCorners(manifold, {{x, 0.05}, {x, -0.05}});
  ExpectDistance(manifold, phi0);
  EXPECT_EQ(manifold.normal, -Vector3d::UnitZ());
}

TEST(BoxManifoldTest, ABoxOnItsEdgeTouchesInBothEndsOfIt) {
  const BoxManifold manifold = Manifold(
      Box({0, 0, 0.05 * std::sqrt(2.0) - 1e-3}, kCube, Turn(EIGEN_PI / 4, Vector3d::UnitY())),
      Box({0, 0, -0.05}, {0.2, 0.2, 0.05}), Vector3d::UnitZ());
  ExpectCorners(manifold, {{0, 0.05}, {0, -0.05}});
  ExpectDistance(manifold, -1e-3);
}

TEST(BoxManifoldTest, CrossingEdgesTouchInTheirCommonPoint) {
  // One ridge along x, at (., 0.02, 0); on it another along y, at (0.01, ., 0).
  const double ridge = 0.05 * std::sqrt(2.0);
  const BoxManifold manifold = Manifold(
      Box({0.01, 0, ridge - 1e-4}, kCube, Turn(EIGEN_PI / 4, Vector3d::UnitY())),
      Box({0, 0.02, -ridge}, kCube, Turn(EIGEN_PI / 4, Vector3d::UnitX())), Vector3d::UnitZ());
  ASSERT_EQ(manifold.count, 1);
  EXPECT_TRUE(manifold.points[0].position.isApprox(Vector3d(0.01, 0.02, -5e-5), 1e-12));
  EXPECT_NEAR(manifold.points[0].signed_distance, -1e-4, 1e-15);
  EXPECT_TRUE(manifold.normal.isApprox(Vector3d::UnitZ(), 1e-15));
}

TEST(BoxManifoldTest, ParallelEdgesTouchInTheEndsOfWhatTheyShare) {
  const double ridge = 0.05 * std::sqrt(2.0);
  const Matrix3d turn = Turn(EIGEN_PI / 4, Vector3d::UnitX());
  const BoxManifold manifold = Manifold(Box({0.08, 0, ridge - 1e-4}, kCube, turn),
                                        Box({0, 0, -ridge}, kCube, turn), Vector3d::UnitZ());
  ASSERT_EQ(manifold.count, 2);
  EXPECT_NEAR(std::min(manifold.points[0].position.x(), manifold.points[1].position.x()), 0.03,
              1e-12);
  EXPECT_NEAR(std::max(manifold.points[0].position.x(), manifold.points[1].position.x()), 0.05,
              1e-12);
  ExpectDistance(manifold, -1e-4);
}

TEST(BoxManifoldTest, TheFallbackIsTakenWhereTheFacesShareNothing) {
  // A direction that belongs to no face that touches: the boxes are next to each other.
  const ManifoldPoint deepest{{1, 2, 3}, -0.5};
  const BoxManifold manifold =
      FindBoxManifold(Box({0.3, 0, 0.0999}), Box({0, 0, 0}), Vector3d::UnitZ(), deepest);
  ASSERT_EQ(manifold.count, 1);
  EXPECT_EQ(manifold.points[0].position, deepest.position);
  EXPECT_EQ(manifold.points[0].signed_distance, deepest.signed_distance);
}

}  // namespace
}  // namespace sap::simulation
