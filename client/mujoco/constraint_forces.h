// Writes the forces of a solution as MuJoCo's own.
#pragma once

#include <cstdint>
#include <span>

#include "client/mujoco/constraints.h"

namespace sap::mujoco {

// Impulses of a solution, and which constraints they belong to.
struct ConstraintImpulses {
  std::span<const int32_t> row;      // index in efc_* of each row
  std::span<const int32_t> contact;  // index among MuJoCo's contacts
  const double* row_impulse;
  const double* impulse;          // [C, 3]
  const double* angular_impulse;  // [N, 3]
};

// Writes efc_force and efc_state. A force in the cone is written to the edges of a pyramid as
// f_n / (2 (condim - 1)) +- f_j / (2 mu_j). Edges may become negative, but MuJoCo adds them up to
// the same force.
//   solved   the contacts of the problem, with the friction that it had
void StoreConstraintForces(const Fields& fields, const ConstraintImpulses& impulses,
                           const ContactArrays& solved);

// Writes qfrc_constraint = J' efc_force.
void StoreGeneralizedForce(const Fields& fields, bool is_sparse);

}  // namespace sap::mujoco
