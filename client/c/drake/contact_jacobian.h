// Products with the Jacobian of contacts, in the layout of `ContactProblem.contacts.jacobian`.
#pragma once

#include <cstdint>

#include "client/c/drake/python_calls.h"

namespace sap::drake {

// J: for each contact 3 rows of the velocities of tree a, then of tree b.
struct ContactJacobian {
  int64_t count;          // C
  const int32_t* tree_a;  // -1: no block
  const int32_t* tree_b;
  const double* values;
};

// Writes J' gamma [n] of impulses gamma [C, 3].
void WriteGeneralizedImpulse(const sap_drake_plant& plant, const ContactJacobian& J,
                             const double* impulse, double* result);

// Writes J v [C, 3] of velocities v [n].
void WriteContactVelocity(const sap_drake_plant& plant, const ContactJacobian& J,
                          const double* velocity, double* result);

}  // namespace sap::drake
