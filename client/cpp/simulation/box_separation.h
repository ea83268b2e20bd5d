// Along which direction two boxes that do not touch are kept apart.
//
// Contacts that are found before bodies touch hold them on their side of a plane. The nearest
// points would give a plane that also stops what only passes: a box that slides over the seam
// between two others has the side of the second ahead of it, a few micrometers high. So the
// directions are compared where the motion leads:
//
//   n = argmax s(n) + n . d   over the 15 axes [Gottschalk et al. 1996] with s(n) >= -shallow
//
// s(n): distance of a from b along n, d: the way of a relative to b. An axis that is far from
// separating them now is the way out on the wrong side, behind a box that is passed through.
#pragma once

#include "client/cpp/simulation/box_manifold.h"

namespace sap::simulation {

struct BoxSeparation {
  double distance;  // the largest s(n) [m]: > 0 if and only if the boxes do not touch
  Vector3d normal;  // from b to a
};

// Turning is left aside: the boxes keep their axes on the way.
BoxSeparation FindBoxSeparation(const OrientedBox& a, const OrientedBox& b, const Vector3d& way,
                                double shallow);

}  // namespace sap::simulation
