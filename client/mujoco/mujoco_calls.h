// MuJoCo's functions that a step is made of, found in the library that the process has loaded.
#pragma once

#include <cstddef>
#include <string>
#include <tl/expected.hpp>

#include "client/mujoco/adapter.h"

namespace sap::mujoco {

struct MujocoCalls {
  using Stage = void (*)(const void* model, void* data);

  // Finds them: in a library that is loaded, by its path, or where null in what the program is
  // linked with. `fields`: of its version; null: that of the released version.
  static tl::expected<MujocoCalls, std::string> Find(const char* library,
                                                     const sap_mujoco_field* fields);

  int version = 0;  // as mj_version(): 3017000
  const sap_mujoco_field* fields = nullptr;
  int64_t exact_diagonal = 0;  // mjENBL_DIAGEXACT; 0: the version has no such flag

  Stage check_position = nullptr;
  Stage check_velocity = nullptr;
  Stage check_acceleration = nullptr;
  Stage position = nullptr;  // mj_fwdPosition, and so on
  Stage velocity = nullptr;
  Stage actuation = nullptr;
  Stage acceleration = nullptr;
  Stage position_sensors = nullptr;
  Stage velocity_sensors = nullptr;
  Stage acceleration_sensors = nullptr;
  Stage position_energy = nullptr;
  Stage velocity_energy = nullptr;
  Stage make_constraint = nullptr;
  Stage island = nullptr;
  Stage project_constraint = nullptr;
  Stage transmission = nullptr;
  Stage euler = nullptr;
  Stage implicit = nullptr;
  int (*is_sparse)(const void* model) = nullptr;
  void (*multiply_jacobian)(const void* model, const void* data, double* result,
                            const double* vector) = nullptr;
  void (*multiply_transpose)(const void* model, const void* data, double* result,
                             const double* vector) = nullptr;
  void (*integrate_position)(const void* model, double* qpos, const double* qvel,
                             double time_step) = nullptr;
  void (*set_state)(const void* model, void* data, const double* state, int kind) = nullptr;
  void (*get_state)(const void* model, const void* data, double* state, int kind) = nullptr;
  Stage* control_callback = nullptr;  // the variable

  // Runs body(context), which calls these functions. MuJoCo's errors, which do not return to their
  // caller, end it: it must have no object to destroy. False and the text if there was one.
  bool Run(void (*body)(void* context), void* context, std::string* error) const;
};

}  // namespace sap::mujoco
