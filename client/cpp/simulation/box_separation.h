// Normal of the contact between two boxes that do not touch yet.
//
// Such a contact keeps a body on its side of a plane. The normal of the nearest points would also
// stop a body that only passes: a box that slides over the seam between two others has the side of
// the second ahead of it, a few micrometers high. So directions are compared at the end of the
// step:
//
//   n = argmax s(n) + n . d   over the 15 axes [Gottschalk et al. 1996] with s(n) >= -shallow
//
// s(n): distance of a from b along n; d: displacement of a relative to b within the step. Axes with
// s(n) < -shallow are excluded: the boxes overlap deeply along them, so that after a passage
// through the other box such an axis would separate on its far side.
#pragma once

#include "client/cpp/simulation/box_manifold.h"

namespace sap::simulation {

struct BoxSeparation {
  double distance;  // the largest s(n) [m]: > 0 if and only if the boxes do not touch
  Vector3d normal;  // from b to a
};

// Rotation within the step is neglected.
BoxSeparation FindBoxSeparation(const OrientedBox& a, const OrientedBox& b,
                                const Vector3d& displacement, double shallow);

}  // namespace sap::simulation
