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

// Arguments of sap_drake_add_pairs.
struct Pairs {
  int64_t count;
  const int64_t* geometries;  // [2, count] A, then B
  const double* depth;
  const double* normal;         // [count, 3] from B to A
  const double* position_on_b;  // [count, 3]
};

// Arguments of sap_drake_add_faces.
struct Surfaces {
  int64_t count;
  const int64_t* geometries;    // [2, count] M, then N
  const int64_t* faces;         // [count]
  const uint8_t* has_gradient;  // [count, 2]
  const double* area;
  const double* pressure;
  const double* position;    // [faces, 3]
  const double* normal;      // [faces of surfaces with one gradient, 3] from N to M
  const double* gradient_m;  // [faces of surfaces with this gradient, 3]
  const double* gradient_n;
};

// Appends contact points between bodies of which at least one can move.
class PointWriter {
 public:
  PointWriter(const sap_drake_plant& plant, const sap_drake_material* materials,
              sap_drake_point* points, int32_t* bodies)
      : plant_(plant), materials_(materials), points_(points), bodies_(bodies) {}

  int64_t count() const { return count_; }

  void AddPairs(const Pairs& pairs);
  void AddFaces(const Surfaces& surfaces);

 private:
  void Add(const sap_drake_material& a, const sap_drake_material& b, sap_drake_point point);

  const sap_drake_plant& plant_;
  const sap_drake_material* materials_;
  sap_drake_point* points_;
  int32_t* bodies_;  // [count, 2]
  int64_t count_ = 0;
};

}  // namespace sap::drake
