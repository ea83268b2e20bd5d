// Many environments over some steps, on the threads of the engine.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "client/mujoco/sap_mujoco.h"
#include "client/mujoco/sap_mujoco_handle.h"
#include "client/mujoco/state_pool.h"
#include "client/mujoco/stepper.h"

namespace sap::mujoco {

// Makes a rollout a part of a longer one, whose steps its caller takes in parts.
struct RolloutPart {
  using Clock = std::chrono::steady_clock;

  StatePool* states{nullptr};  // kept from call to call; null: states are made for the call
  int64_t first_step{0};       // steps that the environments have taken before
  int64_t all_steps{0};        // of the whole rollout; 0: no others than those of the part
  // Rows of states and sensordata are those after the steps whose numbers in the whole rollout are
  // multiples of this, and after its last one.
  int64_t every{1};
  // An environment that ends early has its last state in one row more, unless that is in a row
  // already, and no row is repeated. Rows of environments are one more apart.
  bool has_row_of_end{false};
  int32_t initial_kind{0};  // mjtState of initial_state; 0: that of the rows
  int64_t initial_size{0};
  double* rested{nullptr};       // [N] read and written: seconds below rest_speed; null: from 0 on
  double* final_state{nullptr};  // [N, final_size] written; null: not wanted
  int32_t final_kind{0};
  int64_t final_size{0};
  // Written before each step: its number in the part, counted from first_position.
  std::atomic<int64_t>* begun{nullptr};
  int64_t first_position{0};
  // No step but the first begins later, and environments have taken fewer of them without an error.
  Clock::time_point latest{Clock::time_point::max()};
};

// Number of rows among the first `steps` of `all_steps`.
constexpr int64_t RowsUntil(int64_t steps, int64_t every, int64_t all_steps) {
  return steps == all_steps ? (steps + every - 1) / every : steps / every;
}

// Null: the defaults.
StepSettings SettingsOf(const sap_mujoco_settings* given);

// As sap_mujoco_rollout, with the outcome of all environments.
sap_mujoco_outcome RollOut(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
                           const StepSettings& settings, const RolloutPart& part = {});

}  // namespace sap::mujoco
