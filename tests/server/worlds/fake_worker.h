// Workers without processes and without MuJoCo: a world is five numbers, and its step a few sums in
// an order that matters. They do what a script says, so that tests can cut, kill and delay.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/worlds/worker.h"

namespace sap::test {

constexpr int kFullPhysics = 3;
constexpr int kIntegration = 5;
constexpr int kSensors = 2;
constexpr int kControls = 2;

inline ModelSizes SizesOfFake() {
  ModelSizes sizes{};
  sizes.nq = 2;
  sizes.nv = 1;
  sizes.nu = kControls;
  sizes.nsensordata = kSensors;
  sizes.full_physics = kFullPhysics;
  sizes.integration = kIntegration;
  sizes.control = {0, kControls, 1, 0, 0, 0, 0, 0};
  return sizes;
}

using FakeState = std::array<double, kIntegration>;

// One step. Warm start and controls are in the last two numbers.
inline void StepFake(FakeState* x, const double* control) {
  FakeState& state = *x;
  if (control != nullptr) state[4] = 0.3 * control[0] - 0.7 * control[1];
  state[3] = 0.5 * state[3] + state[0];
  state[0] += 0.1 * state[1] + state[4];
  state[1] = 0.99 * state[1] - 0.2 * state[3];
  state[2] += 1;
}

inline std::array<double, kSensors> SensorsOfFake(const FakeState& state) {
  return {state[0] * state[1], state[3]};
}

// For all workers of a pool.
struct FakeScript {
  std::mutex mutex;
  int started{0};
  int alive{0};
  int loads{0};
  int slices{0};
  int64_t most_steps{0};                                 // of a slice; 0: all
  std::map<int64_t, std::pair<int64_t, WorldEnd>> ends;  // by world: step before which, and how
  std::map<int64_t, int> deaths;                         // by world: how many workers it ends
  std::string load_refusal;                              // reason
  bool step_takes_too_long{false};
  bool waits_for_stop{false};
  std::atomic<int> waiting{0};
};

class FakeWorker final : public Worker {
 public:
  explicit FakeWorker(std::shared_ptr<FakeScript> script) : script_(std::move(script)) {
    const std::lock_guard lock(script_->mutex);
    ++script_->started;
    ++script_->alive;
  }
  ~FakeWorker() override {
    const std::lock_guard lock(script_->mutex);
    --script_->alive;
  }

  bool is_alive() const override { return is_alive_; }

  tl::expected<ModelSizes, ServiceError> Load(const ModelSource&, const IsStopped&) override {
    const std::lock_guard lock(script_->mutex);
    ++script_->loads;
    if (script_->load_refusal.empty()) return SizesOfFake();
    return tl::unexpected(ServiceError(ServiceCode::kResourceExhausted, "refused by the script", "",
                                       script_->load_refusal));
  }

  ServiceStatus Advance(const WorldSlice& slice, const IsStopped& is_stopped) override {
    if (script_->waits_for_stop) {
      ++script_->waiting;
      while (!is_stopped()) std::this_thread::yield();
      return tl::unexpected(ServiceError(ServiceCode::kCancelled, "stopped", ""));
    }
    const std::lock_guard lock(script_->mutex);
    ++script_->slices;
    if (script_->step_takes_too_long) {
      is_alive_ = false;
      return Fault({.world = slice.first_world, .step = slice.first_step}, "WORLD_STEP_TIME");
    }
    int64_t left = script_->most_steps > 0 ? script_->most_steps : slice.worlds * slice.steps;
    for (int64_t i = 0; i < slice.worlds; ++i) {
      const auto death = script_->deaths.find(slice.first_world + i);
      if (death != script_->deaths.end() && death->second-- > 0) {
        is_alive_ = false;
        return Fault({.world = slice.first_world + i, .step = slice.first_step}, "WORLD_LOST");
      }
    }
    for (int64_t i = 0; i < slice.worlds && left > 0; ++i) left -= StepWorld(slice, i, left);
    return {};
  }

 private:
  static ServiceStatus Fault(const WorldStep& at, const char* reason) {
    ServiceError error(ServiceCode::kResourceExhausted, "the fault of a script", "", reason);
    error.world_step = at;
    return tl::unexpected(std::move(error));
  }

  // Returns the number of steps.
  int64_t StepWorld(const WorldSlice& slice, int64_t i, int64_t most) {
    WorldProgress& progress = slice.progress[i];
    FakeState state{};
    const bool is_full = slice.first_step == 0 && slice.settings.full_physics;
    const int size = is_full ? kFullPhysics : kIntegration;
    std::copy_n(slice.states + i * size, size, state.begin());
    const auto end = script_->ends.find(slice.first_world + i);
    int64_t row = 0;
    int64_t taken = 0;
    const int every = slice.settings.every;
    for (; taken < std::min(slice.steps, most); ++taken) {
      const int64_t step = slice.first_step + taken;
      if (end != script_->ends.end() && end->second.first == step) {
        progress.end = end->second.second;
        if (progress.end == WorldEnd::kFailure) {
          progress.code = 3;
          std::ranges::copy(std::string("an island \xff was not solved"), progress.message.begin());
        }
        break;
      }
      StepFake(&state, slice.controls == nullptr
                           ? nullptr
                           : slice.controls + i * slice.control_stride + taken * kControls);
      if (slice.certificates != nullptr) {
        slice.certificates[i * slice.certificate_stride + taken] = {step, 1, 2 * step, state[0]};
      }
      if ((step + 1) % every == 0 || step + 1 == slice.all_steps) Answer(slice, i, row++, state);
    }
    progress.steps = slice.first_step + taken;
    const bool has_ended = progress.end != WorldEnd::kNone;
    if (has_ended && (progress.steps % every != 0 || progress.steps == 0)) {
      Answer(slice, i, row, state);
    }
    std::copy(state.begin(), state.end(), slice.checkpoints + i * kIntegration);
    return taken;
  }

  static void Answer(const WorldSlice& slice, int64_t i, int64_t row, const FakeState& state) {
    const int size = slice.settings.AnswersFullPhysics() ? kFullPhysics : kIntegration;
    if (slice.answered_states != nullptr) {
      std::copy_n(state.begin(), size, slice.answered_states + i * slice.state_stride + row * size);
    }
    if (slice.answered_sensors != nullptr) {
      const auto sensors = SensorsOfFake(state);
      std::ranges::copy(sensors, slice.answered_sensors + i * slice.sensor_stride + row * kSensors);
    }
  }

  const std::shared_ptr<FakeScript> script_;
  bool is_alive_{true};
};

}  // namespace sap::test
