// libsap_islands.so, loaded when it is first needed.
#pragma once

#include <cstdint>

#include "client/mujoco/python_calls.h"

namespace sap::mujoco {

using SolveConstraints = int64_t (*)(const sap_mujoco_field* fields, const void* model, void* data,
                                     int32_t flags, sap_mujoco_certificate* certificate);

// Null if there is none of this version.
SolveConstraints LoadSolver();

}  // namespace sap::mujoco
