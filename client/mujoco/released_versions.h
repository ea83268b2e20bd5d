// Where the fields are in the released versions of MuJoCo.
#pragma once

#include "client/mujoco/python_calls.h"

namespace sap::mujoco {

// The table of a version as mj_version() gives it, 3017000; null: it is unknown.
const sap_mujoco_field* FieldsOfVersion(int version);

}  // namespace sap::mujoco
