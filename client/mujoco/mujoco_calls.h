// MuJoCo's functions that a step is made of, found in the library that the process has loaded.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>

#include "client/mujoco/python_calls.h"
#include "solver/engine/engine_error.h"

namespace sap::mujoco {

struct MujocoCalls {
  using Stage = void (*)(const void* model, void* data);

  // Finds the functions of MuJoCo in a loaded library, by its path, or, if null, in the libraries
  // that the program is linked with. `fields` are those of its version; null: of the released
  // version.
  static tl::expected<MujocoCalls, std::string> Find(const char* library,
                                                     const sap_mujoco_field* fields);

  int version = 0;  // as mj_version(): 3017000
  const sap_mujoco_field* fields = nullptr;
  int64_t exact_diagonal = 0;  // mjENBL_DIAGEXACT; 0: the version has no such flag
  int64_t ipc = 0;             // mjENBL_IPC

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
  void (*multiply_mass)(const void* model, const void* data, double* result,
                        const double* vector) = nullptr;
  int (*add_contact)(const void* model, void* data, const void* contact) = nullptr;
  void (*integrate_position)(const void* model, double* qpos, const double* qvel,
                             double time_step) = nullptr;
  void* (*make_data)(const void* model) = nullptr;
  Stage reset_data = nullptr;
  Stage step = nullptr;     // mj_step
  Stage forward = nullptr;  // mj_forward
  void (*delete_data)(void* data) = nullptr;
  void (*set_state)(const void* model, void* data, const double* state, int kind) = nullptr;
  void (*get_state)(const void* model, const void* data, double* state, int kind) = nullptr;
  void (*forward_skip)(const void* model, void* data, int skip_stage, int skip_sensor) = nullptr;
  // mj_effBuild, before 3.16 mjd_effBuild, which is in no header; mj_fwdPosition ends with it.
  void (*build_metric)(const void* model, void* data, int is_discrete, int one) = nullptr;
  // mj_effMulAdd, before 3.16 mjd_effMulAdd: adds the product with A - M.
  void (*multiply_metric)(const void* model, void* data, double* result, const double* vector,
                          int with_contacts) = nullptr;
  Stage passive_slopes = nullptr;        // mjd_passive_vel, which is in no header; adds to qDeriv
  double (**time_callback)() = nullptr;  // the variable
  Stage* control_callback = nullptr;     // the variable
  std::array<Stage*, 3> actuator_callbacks = {};  // the variables; their types do not matter

  // Whether the program has functions of its own that the stage of actuation calls.
  bool HasCallbacksOfActuation() const;

  // Makes the constraints again after the contacts of a state were changed, and the metric of
  // `discrete`, which they overwrite.
  void RemakeConstraints(const void* model, void* data) const;

  // Time of the program's clock for MuJoCo's timers; 0: it has none.
  tl::expected<double, EngineError> Now() const;

  // Runs body(), which calls these functions. MuJoCo's errors, which leave by longjmp, end it: it
  // must have no object to destroy.
  template <typename Body>
  EngineStatus Run(const Body& body) const {
    static_assert(std::is_trivially_destructible_v<Body>);
    return RunGuarded([](const void* given) { (*static_cast<const Body*>(given))(); }, &body);
  }

 private:
  static EngineStatus RunGuarded(void (*run)(const void* body), const void* body);
};

}  // namespace sap::mujoco
