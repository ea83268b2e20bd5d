// Where an actuator's forces and controls are.
#pragma once

#include <cstdint>

#include "client/mujoco/fields.h"

namespace sap::mujoco {

// Row of an actuator in actuator_force and actuator_moment; -1: it has several. MuJoCo before 4 has
// one force and one control per actuator, and no arrays of their addresses.
inline int64_t OutputOf(const Fields& fields, int64_t actuator) {
  if (fields.actuator_outadr == nullptr) return actuator;
  return fields.actuator_outnum[actuator] == 1 ? fields.actuator_outadr[actuator] : -1;
}

// Index of an actuator's first control.
inline int64_t ControlOf(const Fields& fields, int64_t actuator) {
  return fields.actuator_ctrladr == nullptr ? actuator : fields.actuator_ctrladr[actuator];
}

// Whether the controls of an actuator act after a delay.
inline bool IsDelayed(const Fields& fields, int64_t actuator) {
  return fields.actuator_delay != nullptr && fields.actuator_delay[actuator] > 0.0;
}

}  // namespace sap::mujoco
