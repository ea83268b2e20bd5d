// Models of MuJoCo for the tests of workers, and the answers that this process computes itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/worlds/worker/model_loader.h"
#include "server/worlds/worker_process.h"
#include "server/worlds/world_slice.h"

namespace sap::test {

// Path of MuJoCo's library: $SAP_MUJOCO_LIBRARY, otherwise that of the environment that
// tests/python.sh --prepare makes. Empty, which fails the test: there is none.
const std::string& MujocoLibrary();

// The caller waits for the answer.
inline constexpr auto kNever = [] { return false; };

WorkerConfig ConfigOfWorker();
std::unique_ptr<WorkerProcess> StartWorker(const WorkerConfig& config = ConfigOfWorker());

// A model of one file; its hash is that of nothing but the number.
std::shared_ptr<ModelSource> ModelOf(std::string mjcf);
// The same as MuJoCo's binary.
std::shared_ptr<ModelSource> BinaryOf(const ModelSource& model);

// A binary model with an actuator that is a plugin.
std::string BinaryWithPlugin();

// A mesh in the format of Wavefront.
inline constexpr const char* kTetrahedron =
    "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";

// Scenes by name: arm, humanoid, clutter, cloth, gripper, muscle.
std::string SceneOf(const std::string& name);
const std::vector<std::string>& SceneNames();

// MuJoCo in this process.
const ModelLoader& Mujoco();
ModelSizes SizesOf(const ModelSource& model);

// N worlds over K steps.
struct Rollout {
  std::shared_ptr<ModelSource> model;
  ModelSizes sizes{};
  WorldSettings settings;
  int64_t worlds{1};
  int64_t steps{1};
  std::vector<double> states;    // [N, size]
  std::vector<double> controls;  // [N, K, size]

  int64_t AnsweredSize() const {
    return settings.AnswersFullPhysics() ? sizes.full_physics : sizes.integration;
  }
  int64_t ControlSize() const;
  int64_t Rows() const { return AnsweredSteps(steps, settings.every, steps); }
};

// States near the initial one of the model, and controls, that differ from world to world.
Rollout RolloutOf(const std::string& scene, int64_t worlds, int64_t steps, int32_t law);

struct RolloutAnswer {
  std::vector<double> states;                        // [N, rows, size]
  std::vector<double> sensors;                       // [N, rows, nsensordata]
  std::vector<double> checkpoints;                   // [N, integration]
  std::vector<sap_mujoco_certificate> certificates;  // [N, K]
  std::vector<WorldProgress> progress;
};

// Answer of sap_mujoco_rollout, without checkpoints.
RolloutAnswer ComputeHere(const Rollout& rollout);

// Answer of a worker, in slices of some worlds and steps.
tl::expected<RolloutAnswer, ServiceError> ComputeThere(Worker* worker, const Rollout& rollout,
                                                       int64_t worlds, int64_t steps);

// All steps of a rollout as one slice, of which nothing but the progress is wanted.
class SliceOfAll {
 public:
  explicit SliceOfAll(Rollout rollout);

  WorldSlice& get() { return slice_; }
  const std::vector<WorldProgress>& progress() const { return progress_; }

 private:
  const Rollout rollout_;
  std::vector<WorldProgress> progress_;
  WorldSlice slice_;
};

bool HaveEqualBits(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace sap::test
