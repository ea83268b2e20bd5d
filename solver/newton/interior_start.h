// The start of the interior-point method: v, z, u and g of one factorization (interior_point.h).
#pragma once

#include "solver/newton/interior_system.h"

namespace sap {

// Mean of sqrt(w) |z| over the contacts of the least-squares problem, and the number of
// complementary products.
struct InteriorStart {
  double size{0};
  double products{0};
};

// v := v* + dv of the problem with W^2 = w, and z, u, g inside of their cones and bounds. False if
// stopped or where no start was found.
bool StartInteriorPoint(InteriorSystem* system, InteriorStart* start);

// The start made larger, where impulses of the order of 1/R are called for.
void RaiseStart(double size, InteriorSystem* system);

}  // namespace sap
