// Contact points of two boxes that overlap or nearly touch.
//
// FCL finds whether two boxes overlap and the direction of least penetration, but its contact
// points are not sufficient: it keeps at most four of up to eight, and prefers an edge-edge axis to
// a face axis once its depth is 5 % smaller. Contacts of near-rigid boxes are micrometers deep, so
// that a tilt of 1e-3 rad would leave a box that stands on its face with one contact point. So only
// the direction is taken from FCL. Where it is close to a face normal of either box, the opposite
// face of the other box is clipped by the sides of that face, which gives every corner of the
// shared region. Corners that do not touch are included up to a distance, the reach.
#pragma once

#include <array>
#include <optional>

#include "client/cpp/simulation/body.h"

namespace sap::simulation {

struct OrientedBox {
  Vector3d center;
  Matrix3d axes;  // columns, world axes
  Vector3d half_extent;
};

struct ManifoldPoint {
  Vector3d position;       // halfway between the two surfaces
  double signed_distance;  // phi0 <= reach along the normal [m]
};

struct BoxManifold {
  Vector3d normal;  // from b to a
  std::array<ManifoldPoint, 8> points;
  int count{0};

  void Add(const Vector3d& position, double signed_distance) {
    points[count++] = {position, signed_distance};
  }
};

// Contact points of a and b with phi0 <= reach. direction: unit, from b to a, the direction of
// least penetration. deepest: for boxes that overlap, a point with its depth along direction,
// returned if no other point has phi0 <= 0. The order of the points depends on the poses alone.
// Exchanging a and b gives the same points and the opposite normal up to rounding, except where a
// face of each is equally close to the direction: then that of a is taken.
BoxManifold FindBoxManifold(const OrientedBox& a, const OrientedBox& b, const Vector3d& direction,
                            const std::optional<ManifoldPoint>& deepest, double reach = 0);

}  // namespace sap::simulation
