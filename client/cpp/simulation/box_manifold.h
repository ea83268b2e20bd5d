// The contact points of two boxes that overlap or nearly touch.
//
// FCL finds whether two boxes overlap and the shortest way out, but its own points are not enough
// here: it keeps at most four of up to eight, and it prefers an edge-edge axis to a face as soon as
// its depth is 5 % smaller. Contacts of near-rigid boxes are micrometers deep, so that a tilt of
// 1e-3 rad is enough to turn a box standing on its face into a box standing on one point. So only
// the direction is taken from FCL, and where it is close to a face normal of either box, the face
// of the other box that looks at it is clipped by the sides of that face, which yields every corner
// of the region they share. Corners that do not touch yet count up to a reach.
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

// Points of a and b no further apart than reach along the normal; direction is the shortest way out
// for a (unit, from b to a), deepest a point with its depth along direction if the boxes overlap,
// taken where none of the others does. They are in an order that depends on the poses alone. The
// same points and the same normal for both orders of the boxes up to rounding, but for faces that
// are equally close to the direction, where a's is taken.
BoxManifold FindBoxManifold(const OrientedBox& a, const OrientedBox& b, const Vector3d& direction,
                            const std::optional<ManifoldPoint>& deepest, double reach = 0);

}  // namespace sap::simulation
