// Worlds of one model over some steps, as a worker takes them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/mujoco/python_calls.h"

namespace sap {

// The files of a model as they were put, and its hash.
struct ModelSource {
  struct File {
    std::string name;
    std::string content;
  };

  std::array<uint8_t, 32> id;
  bool is_binary{false};    // MJB, otherwise MJCF
  std::vector<File> files;  // the first is the root
};

// As the message ModelSizes.
struct ModelSizes {
  int32_t nq, nv, nu, na, nbody, neq, nmocap, nuserdata, nsensordata;
  int32_t full_physics, integration;
  // Sizes of the ControlComponents, by number; the first is that of none.
  std::array<int32_t, 8> control;
};

// Kind of the answered states.
enum class AnsweredKind : uint8_t { kAsStates, kFullPhysics, kIntegration };

// How worlds are stepped, as the message AdvanceRequest says.
struct WorldSettings {
  int32_t law{0};           // SAP_MUJOCO_SAP, ...
  bool full_physics{true};  // the kind of the states of the call; false: integration
  AnsweredKind answered_kind{AnsweredKind::kAsStates};
  uint32_t control_components{0};  // 1 << number of a ControlComponent
  int32_t every{1};
  double relative_tolerance{0};  // 0: the default of the law
  int32_t max_iterations{0};     // 0: the default
  bool refuses_unsolved{false};
  bool holds_after_warning{false};
  double rest_speed{0};       // [m/s]; 0: worlds do not end at rest
  double rest_duration_s{0};  // below the speed

  bool AnswersFullPhysics() const {
    return answered_kind == AnsweredKind::kAsStates ? full_physics
                                                    : answered_kind == AnsweredKind::kFullPhysics;
  }
};

enum class WorldEnd : uint8_t { kNone = 0, kSteps = 1, kWarning = 2, kRest = 3, kFailure = 4 };

// How far a world has come. Slices of one world follow each other with it.
struct WorldProgress {
  int64_t steps{0};      // taken
  double slow_s{0};      // time below rest_speed
  uint32_t warnings{0};  // bits of mjtWarning
  WorldEnd end{WorldEnd::kNone};
  int32_t code{0};  // of a failure: a ServiceCode
  std::array<char, 256> message{};
};

// Some worlds, and steps [first_step, first_step + steps) of each, world by world. Every array
// belongs to the call, and is written for the worlds of the slice alone, and only if the slice is
// answered. Rows after the end of a world are the caller's to fill.
struct WorldSlice {
  std::shared_ptr<const ModelSource> model;
  const ModelSizes* sizes{nullptr};
  WorldSettings settings;
  // No step begins later than this after the first one [s]; 0: no limit. Worlds have then taken
  // fewer steps, as their progress tells, and go on from their checkpoints: those of worlds that
  // have not begun are undefined, and their progress is as it was.
  double max_s{0};
  int64_t first_world{0};  // its number in the call, for messages
  int64_t worlds{0};
  int64_t first_step{0};
  int64_t steps{0};
  int64_t all_steps{0};  // K: the last step is answered whatever `every` is

  // [worlds, size]: of settings.full_physics if first_step is 0 and it is set, otherwise of
  // integration.
  const double* states{nullptr};
  // Controls of a world, of step first_step on; rows are `control_stride` numbers apart from world
  // to world. Null: none.
  const double* controls{nullptr};
  int64_t control_stride{0};

  // Written. Rows of a world are those of its answered steps in the slice, in order; a stride is
  // from world to world. A world that ends between two answered steps, failed or not, has its last
  // state in one row more, and so has one that fails in its first step. Null: not wanted.
  double* answered_states{nullptr};
  int64_t state_stride{0};
  double* answered_sensors{nullptr};
  int64_t sensor_stride{0};
  sap_mujoco_certificate* certificates{nullptr};  // of each step taken
  int64_t certificate_stride{0};
  double* checkpoints{nullptr};      // [worlds, integration], after the last step taken
  WorldProgress* progress{nullptr};  // [worlds], read and written
};

// Number of answered steps among [0, steps) of `all_steps`.
constexpr int64_t AnsweredSteps(int64_t steps, int64_t every, int64_t all_steps) {
  return steps == all_steps ? (steps + every - 1) / every : steps / every;
}

}  // namespace sap
