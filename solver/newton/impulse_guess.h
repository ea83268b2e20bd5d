// Guesses of impulses that a problem may have (proto/sap/v1/problem.proto), of one island.
#pragma once

#include <span>

#include "solver/newton/pair_certificate.h"

namespace sap {

// Whether any guess of the constraints with inequalities is not 0.
bool HasImpulseGuess(const IslandView& view);

// The guess of constraint i of a pool, in the rows of its law and the island's unit of mass; 0
// where the problem has none.
template <int index>
LawVector<PoolAt<index>::Laws::kRows> ImpulseGuess(const IslandView& view, PoolIndex<index> pool,
                                                   int i) {
  constexpr int kRows = PoolAt<index>::Laws::kRows;
  const ContactProblem& problem = view.model.problem();
  const int64_t number = view.layout(pool).order()[i];
  const double per_unit = 1 / view.constants().mass_unit;
  LawVector<kRows> guess{};
  if constexpr (IsRow(pool)) {
    const std::span<const double> rows = problem.guess_row_impulse();
    if (!rows.empty()) guess[0] = rows[number] * per_unit;
  } else {
    const std::span<const double> linear = problem.guess_impulse();
    if (!linear.empty()) {
      for (int axis = 0; axis < 3; ++axis) guess[axis] = linear[3 * number + axis] * per_unit;
    }
    const std::span<const double> angular = problem.guess_angular_impulse();
    if (kRows > 3 && !angular.empty()) {
      // The last rows; four rows have the normal axis alone.
      const int64_t end = 3 * int64_t{problem.angular_contact(number)} + 3;
      for (int row = 3; row < kRows; ++row) guess[row] = angular[end - kRows + row] * per_unit;
    }
  }
  return guess;
}

}  // namespace sap
