// The start of the interior-point method: v, z, u and g of one factorization (interior_point.h).
#pragma once

#include "solver/newton/interior_system.h"

namespace sap {

// Mean of sqrt(w) |z| over the contacts where the start is made from, the least-squares problem or
// the guess, and the number of complementary products.
struct InteriorStart {
  double size{0};
  double products{0};
};

// v := v* + dv of the problem with W^2 = w, and z, u, g inside of their cones and bounds. False if
// stopped or where no start was found.
bool StartInteriorPoint(InteriorSystem* system, InteriorStart* start);

// z and g of the guesses of impulses that the problem has, u of them at the v at which data was
// evaluated last, a tenth of their mean size inside of their cones and bounds; no factorization.
// False if the island has none, or none within the range of doubles.
bool StartFromGuess(InteriorSystem* system, InteriorStart* start);

// The start made larger, where impulses of the order of 1/R are called for.
void RaiseStart(double size, InteriorSystem* system);

}  // namespace sap
