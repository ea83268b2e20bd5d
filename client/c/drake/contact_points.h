// Contact points from what Drake's geometry engine returns.
//
// A pair of geometries with stiffnesses k_a and k_b is two springs in series. A face of a
// hydroelastic surface with area a, pressure p and pressure gradient g along the normal is a
// contact of stiffness k = a g at the signed distance -p / g [Masterjohn et al. 2022]; where both
// geometries have gradients, 1 / g = 1 / g_m + 1 / g_n.
#pragma once

#include <cstdint>

#include "client/c/drake/python_calls.h"

namespace sap::drake {

// Appends contact points between bodies of which at least one can move.
class PointWriter {
 public:
  PointWriter(const sap_drake_plant& plant, const sap_drake_material* materials,
              sap_drake_point* points, int32_t* bodies)
      : plant_(plant), materials_(materials), points_(points), bodies_(bodies) {}

  int64_t count() const { return count_; }

  void AddPairs(const sap_drake_pairs& pairs);
  void AddFaces(const sap_drake_surfaces& surfaces);

 private:
  void Add(const sap_drake_material& a, const sap_drake_material& b, sap_drake_point point);

  const sap_drake_plant& plant_;
  const sap_drake_material* materials_;
  sap_drake_point* points_;
  int32_t* bodies_;  // [count, 2]
  int64_t count_ = 0;
};

}  // namespace sap::drake
