// The same problem in another unit of mass: its velocities are equal, to the bit if the factor is a
// power of two.
#pragma once

#include <vector>

#include "tests/support/problem_arrays.h"

namespace sap::test {

inline void Scale(std::vector<double>* values, double factor) {
  for (double& value : *values) value *= factor;
}

// Masses, stiffnesses, forces and impulses times a factor; regularization is its inverse.
inline ProblemArrays Scaled(ProblemArrays arrays, double factor) {
  Scale(&arrays.trees.dynamics_matrix, factor);
  Scale(&arrays.bodies.mass, factor);
  Scale(&arrays.bodies.inertia, factor);
  for (LawArrays* law : {&arrays.contacts.law, &arrays.body_contacts.law}) {
    Scale(&law->stiffness, factor);
    Scale(&law->regularization_t, 1 / factor);
    Scale(&law->regularization_n, 1 / factor);
    Scale(&law->delassus_estimate, 1 / factor);
    Scale(&law->adhesion, factor);
    Scale(&law->hunt_crossley.elastic_force, factor);
    Scale(&law->hunt_crossley.lagged_normal_impulse, factor);
    Scale(&law->guess_impulse, factor);
    Scale(&law->guess_angular_impulse, factor);
  }
  Scale(&arrays.rows.stiffness, factor);
  Scale(&arrays.rows.force_lower, factor);
  Scale(&arrays.rows.force_upper, factor);
  Scale(&arrays.rows.force_offset, factor);
  Scale(&arrays.rows.regularization, 1 / factor);
  Scale(&arrays.rows.delassus_estimate, 1 / factor);
  Scale(&arrays.rows.guess_impulse, factor);
  return arrays;
}

}  // namespace sap::test
