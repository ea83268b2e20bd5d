#include "client/cpp/simulation/box_separation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sap::simulation {
namespace {

// Squared sine below which two edges count as parallel: they add no axis to those of the faces.
constexpr double kParallel = 1e-6;

double HalfWidth(const OrientedBox& box, const Vector3d& direction) {
  return (box.axes.transpose() * direction).cwiseAbs().dot(box.half_extent);
}

}  // namespace

BoxSeparation FindBoxSeparation(const OrientedBox& a, const OrientedBox& b,
                                const Vector3d& displacement, double shallow) {
  const Vector3d between = a.center - b.center;
  BoxSeparation separation{-std::numeric_limits<double>::infinity(), Vector3d::Zero()};
  double farthest = -std::numeric_limits<double>::infinity();
  const auto compare = [&](const Vector3d& axis) {
    const Vector3d normal = axis.dot(between) < 0 ? Vector3d(-axis) : axis;
    const double distance = normal.dot(between) - HalfWidth(a, normal) - HalfWidth(b, normal);
    separation.distance = std::max(separation.distance, distance);
    const double at_the_end = distance + normal.dot(displacement);
    if (distance < -shallow || at_the_end <= farthest) return;
    farthest = at_the_end;
    separation.normal = normal;
  };
  for (int i = 0; i < 3; ++i) compare(a.axes.col(i));
  for (int i = 0; i < 3; ++i) compare(b.axes.col(i));
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Vector3d across = a.axes.col(i).cross(b.axes.col(j));
      const double sine2 = across.squaredNorm();
      if (sine2 > kParallel) compare(across / std::sqrt(sine2));
    }
  }
  return separation;
}

}  // namespace sap::simulation
