// MuJoCo as the process has loaded it: its functions, its version, and where its fields are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/mujoco/python_calls.h"

namespace sap::mujoco {

struct MujocoLibrary {
  int version;                     // as mj_version(): 3017000
  const sap_mujoco_field* fields;  // null: of an unknown version
  // Whether mj_forwardSkip and mj_step2 call a function of their own in place of mj_fwdConstraint,
  // as they do in 3.14 to 3.17.
  bool has_hidden_stage;

  void (*fwd_constraint)(const void* model, void* data);
  void (*fwd_acceleration)(const void* model, void* data);
  void (*sensor_acc)(const void* model, void* data);
  void (*forward_skip)(const void* model, void* data, int skip_stage, int skip_sensor);
  int (*is_sparse)(const void* model);
  double (**time_callback)();  // the variable mjcb_time
  // Instructions of mj_step2.
  const std::byte* step_2;
  size_t step_2_bytes;

  // Reads the program's clock for MuJoCo's timers; 0: it has none.
  double Now() const { return *time_callback != nullptr ? (*time_callback)() : 0.0; }

  bool IsInStep2(const void* instruction) const {
    const auto* place = static_cast<const std::byte*>(instruction);
    return place >= step_2 && place < step_2 + step_2_bytes;
  }
};

// Ends the process if MuJoCo is not loaded: who asks was called in place of one of its
// functions, and there is none to call instead. Of two libraries, as a program may have that links
// one and imports another, it is the first.
const MujocoLibrary& LoadedMujoco();

bool IsMujocoLoaded();

}  // namespace sap::mujoco
