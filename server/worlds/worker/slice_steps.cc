#include "server/worlds/worker/slice_steps.h"

#include <algorithm>
#include <chrono>

#include "client/mujoco/rollout.h"

namespace sap {
namespace {

using Clock = mujoco::RolloutPart::Clock;

class Slice {
 public:
  Slice(const ModelLoader& loader, ModelStore::Model* model, BlockHead* head)
      : loader_(loader), model_(*model), head_(*head), slice_(head->slice) {
    const sap_mujoco_settings given = {slice_.settings.law, slice_.settings.refuses_unsolved,
                                       slice_.settings.relative_tolerance,
                                       slice_.settings.max_iterations};
    settings_ = mujoco::SettingsOf(&given);
    if (slice_.max_s > 0) {
      latest_ =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(std::min(slice_.max_s, kLongest_s)));
    }
  }

  WorkerVerdict Run() {
    for (int64_t world = 0; world < slice_.worlds; ++world) {
      if (head_.stop != 0) return WorkerVerdict::kStopped;
      if (world > 0 && latest_ != Clock::time_point::max() && Clock::now() > latest_) break;
      if (ProgressOf(world)->end == WorldEnd::kNone) StepWorld(world);
    }
    return head_.stop != 0 ? WorkerVerdict::kStopped : WorkerVerdict::kDone;
  }

 private:
  static constexpr double kLongest_s = 1e6;

  WorldProgress* ProgressOf(int64_t world) const {
    return At<WorldProgress>(&head_, slice_.progress) + world;
  }

  // The array of a world, of `size` elements each; null: there is none.
  template <typename Type>
  Type* ArrayOf(int64_t world, BlockOffset offset, int64_t size) const {
    Type* const first = At<Type>(&head_, offset);
    return first == nullptr ? nullptr : first + world * size;
  }

  void StepWorld(int64_t world) {
    sap_mujoco_outcome outcome = {};
    const void* const model = model_.address;
    int64_t taken = 0;
    int64_t warned_in = 0;
    sap_mujoco_rollout_arrays arrays = ArraysOf(world);
    arrays.model = &model;
    arrays.taken = &taken;
    arrays.outcomes = &outcome;
    if (slice_.settings.holds_after_warning) arrays.warned_in = &warned_in;
    mujoco::RolloutPart part = PartOf(world);
    mujoco::RollOut(loader_.solver(), arrays, settings_, part);
    Tell(outcome, taken, ProgressOf(world));
  }

  sap_mujoco_rollout_arrays ArraysOf(int64_t world) {
    const WorldSettings& settings = slice_.settings;
    const ModelSizes& sizes = slice_.sizes;
    const bool is_full = settings.AnswersFullPhysics();
    const int64_t rows = RowsOf(slice_) + 1;  // with that of an early end
    sap_mujoco_rollout_arrays arrays = {};
    arrays.environments = 1;
    arrays.steps = slice_.steps;
    arrays.initial_state = ArrayOf<const double>(world, slice_.states, InitialSize());
    arrays.control_size = ControlSize(slice_);
    arrays.control =
        ArrayOf<const double>(world, slice_.controls, slice_.steps * arrays.control_size);
    arrays.control_kind = StateKinds::OfControls(settings.control_components);
    arrays.state_kind = is_full ? loader_.kinds().full_physics : loader_.kinds().integration;
    arrays.state_size = is_full ? sizes.full_physics : sizes.integration;
    arrays.state = ArrayOf<double>(world, slice_.answered_states, rows * arrays.state_size);
    arrays.sensordata = ArrayOf<double>(world, slice_.answered_sensors, rows * sizes.nsensordata);
    arrays.threads = 1;
    arrays.stop = &head_.stop;
    arrays.rest_speed = settings.rest_speed;
    arrays.rest_seconds = settings.rest_duration_s;
    arrays.certificates = ArrayOf<sap_mujoco_certificate>(world, slice_.certificates, slice_.steps);
    return arrays;
  }

  mujoco::RolloutPart PartOf(int64_t world) {
    mujoco::RolloutPart part;
    part.states = &model_.states;
    part.first_step = slice_.first_step;
    part.all_steps = slice_.all_steps;
    part.every = slice_.settings.every;
    part.has_row_of_end = true;
    part.initial_kind =
        BeginsWithFullPhysics() ? loader_.kinds().full_physics : loader_.kinds().integration;
    part.initial_size = InitialSize();
    part.rested = &ProgressOf(world)->slow_s;
    part.final_state = ArrayOf<double>(world, slice_.checkpoints, slice_.sizes.integration);
    part.final_kind = loader_.kinds().integration;
    part.final_size = slice_.sizes.integration;
    part.begun = &head_.position;
    part.first_position = world * slice_.steps;
    part.latest = latest_;
    return part;
  }

  bool BeginsWithFullPhysics() const {
    return slice_.first_step == 0 && slice_.settings.full_physics;
  }
  int64_t InitialSize() const {
    return BeginsWithFullPhysics() ? slice_.sizes.full_physics : slice_.sizes.integration;
  }

  static void Tell(const sap_mujoco_outcome& outcome, int64_t taken, WorldProgress* progress) {
    progress->steps += taken;
    progress->warnings |= static_cast<uint32_t>(outcome.warnings);
    progress->end = static_cast<WorldEnd>(outcome.end);
    progress->code = outcome.code;
    std::ranges::copy_n(outcome.message, sizeof outcome.message, progress->message.begin());
  }

  const ModelLoader& loader_;
  ModelStore::Model& model_;
  BlockHead& head_;
  const BlockSlice& slice_;
  mujoco::StepSettings settings_;
  Clock::time_point latest_{Clock::time_point::max()};
};

static_assert(static_cast<int>(WorldEnd::kSteps) == SAP_MUJOCO_END_STEPS &&
              static_cast<int>(WorldEnd::kWarning) == SAP_MUJOCO_END_WARNING &&
              static_cast<int>(WorldEnd::kRest) == SAP_MUJOCO_END_REST &&
              static_cast<int>(WorldEnd::kFailure) == SAP_MUJOCO_END_FAILURE);

}  // namespace

WorkerVerdict StepSlice(const ModelLoader& loader, ModelStore::Model* model, BlockHead* head) {
  return Slice(loader, model, head).Run();
}

}  // namespace sap
