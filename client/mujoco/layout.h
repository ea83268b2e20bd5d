// Where the arrays of a problem are in the buffers that it is written to.
#pragma once

#include <span>

#include "client/mujoco/constraints.h"
#include "client/mujoco/couplings.h"
#include "client/mujoco/python_calls.h"
#include "client/mujoco/servos.h"

namespace sap::mujoco {

// Upper bounds of what the actuators and tendons of a model become.
struct RowBounds {
  int64_t rows = 0;
  int64_t non_zeros = 0;
};

RowBounds BoundsOfImplicitRows(const Fields& fields);

// `more`: rows besides those of constraints.
sap_mujoco_layout MakeLayout(const Fields& fields, const Trees& trees, const Couplings& couplings,
                             const ConstraintCounts& counts, const RowBounds& more);

// All but `parts`, which are unsigned integers.
ContactArrays ContactsIn(const sap_mujoco_layout& layout, double* doubles, int32_t* integers);

std::span<Servo> ServosIn(const Fields& fields, const sap_mujoco_layout& layout, double* doubles);

}  // namespace sap::mujoco
