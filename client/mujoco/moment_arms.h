// Moment arms of transmissions and tendons.
#pragma once

#include <cstdint>
#include <span>

#include "client/mujoco/fields.h"

namespace sap::mujoco {

// Dofs and moment arms of a transmission or tendon.
struct MomentArms {
  std::span<const int32_t> dofs;
  const double* values;

  double Times(const double* velocity) const;
};

MomentArms ArmsOfOutput(const Fields& fields, int64_t output);
MomentArms ArmsOfTendon(const Fields& fields, int64_t tendon);

}  // namespace sap::mujoco
