#include "server/worlds/slice_block.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "solver/engine/engine_error.h"

namespace sap {
namespace {

int64_t AnsweredSize(const BlockSlice& slice) {
  return slice.settings.AnswersFullPhysics() ? slice.sizes.full_physics : slice.sizes.integration;
}

int64_t InitialSize(const BlockSlice& slice) {
  const bool is_full = slice.first_step == 0 && slice.settings.full_physics;
  return is_full ? slice.sizes.full_physics : slice.sizes.integration;
}

BlockSlice Describe(const WorldSlice& slice) {
  BlockSlice place = {};
  place.settings = slice.settings;
  place.sizes = *slice.sizes;
  place.max_s = slice.max_s;
  place.worlds = slice.worlds;
  place.first_step = slice.first_step;
  place.steps = slice.steps;
  place.all_steps = slice.all_steps;
  return place;
}

// Returns the bytes of the block.
int64_t Place(const WorldSlice& slice, BlockSlice* place) {
  const ModelSizes& sizes = *slice.sizes;
  const int64_t worlds = slice.worlds;
  const int64_t rows = worlds * (RowsOf(*place) + 1);
  ArrayPlaces places;
  place->progress = places.Add<WorldProgress>(worlds);
  place->states = places.Add<double>(worlds * InitialSize(*place));
  place->controls =
      places.Add<double>(worlds * slice.steps * ControlSize(*place), slice.controls != nullptr);
  place->answered_states =
      places.Add<double>(rows * AnsweredSize(*place), slice.answered_states != nullptr);
  place->answered_sensors =
      places.Add<double>(rows * sizes.nsensordata, slice.answered_sensors != nullptr);
  place->certificates =
      places.Add<sap_mujoco_certificate>(worlds * slice.steps, slice.certificates != nullptr);
  place->checkpoints = places.Add<double>(worlds * sizes.integration, slice.checkpoints != nullptr);
  return places.end();
}

// Codes of errors of a step.
bool IsCode(int32_t code) {
  switch (static_cast<EngineErrorCode>(code)) {
    case EngineErrorCode::kInvalidArgument:
    case EngineErrorCode::kResourceExhausted:
    case EngineErrorCode::kFailedPrecondition:
    case EngineErrorCode::kInternal:
      return code <= std::numeric_limits<uint8_t>::max();
    default:
      return false;
  }
}

// Whether a world can be there after the slice, of which `before` is the progress before it.
bool IsPossible(const WorldSlice& slice, const WorldProgress& before, const WorldProgress& after) {
  if (before.end != WorldEnd::kNone) return true;  // nothing is taken of it
  const int64_t taken = after.steps - before.steps;
  if (taken < 0 || taken > slice.steps || after.end > WorldEnd::kFailure) return false;
  if (!(after.slow_s >= 0)) return false;
  const bool is_whole = after.steps == slice.all_steps;
  switch (after.end) {
    case WorldEnd::kNone:
      return !is_whole;
    case WorldEnd::kSteps:
      return is_whole;
    case WorldEnd::kFailure:
      return IsCode(after.code) && taken < slice.steps;
    default:
      return taken > 0;
  }
}

// Rows that a world has in the slice, with that of an early end.
int64_t RowsTaken(const BlockSlice& slice, const WorldProgress& after) {
  const int32_t every = slice.settings.every;
  const int64_t rows = AnsweredSteps(after.steps, every, slice.all_steps) -
                       AnsweredSteps(slice.first_step, every, slice.all_steps);
  const bool is_early = after.end > WorldEnd::kSteps && after.steps != slice.all_steps;
  const bool is_between = after.steps == 0 || after.steps % every != 0;
  return rows + (is_early && is_between ? 1 : 0);
}

template <typename Type>
void Copy(BlockHead* head, BlockOffset from, int64_t begin, int64_t count, Type* to) {
  if (to == nullptr || from == 0 || count == 0) return;
  std::memcpy(to, At<Type>(head, from) + begin, static_cast<size_t>(count) * sizeof(Type));
}

// Numbers that messages can have, whatever the worker wrote.
sap_mujoco_certificate Bounded(sap_mujoco_certificate found) {
  const auto bound = [](int64_t* value) {
    *value = std::clamp<int64_t>(*value, 0, std::numeric_limits<int32_t>::max());
  };
  bound(&found.islands);
  bound(&found.unsolved);
  bound(&found.iterations);
  return found;
}

}  // namespace

std::string PrintableText(const char* text, size_t size) {
  std::string printable(text, strnlen(text, size));
  for (char& c : printable) {
    if (c == '\n' || c == '\t') c = ' ';
    if (c < ' ' || c > '~') c = '?';
  }
  while (!printable.empty() && printable.back() == ' ') printable.pop_back();
  return printable;
}

bool PutSlice(const WorldSlice& slice, SharedBlock* block, BlockSlice* places) {
  *places = Describe(slice);
  if (!block->Reserve(Place(slice, places))) return false;
  BlockHead* const head = block->head();
  head->request = WorkerRequest::kAdvance;
  head->model = slice.model->id;
  head->slice = *places;
  std::copy_n(slice.progress, slice.worlds, At<WorldProgress>(head, places->progress));
  std::copy_n(slice.states, slice.worlds * InitialSize(*places), At<double>(head, places->states));
  const int64_t control = slice.steps * ControlSize(*places);
  for (int64_t world = 0; places->controls != 0 && world < slice.worlds; ++world) {
    std::copy_n(slice.controls + world * slice.control_stride, control,
                At<double>(head, places->controls) + world * control);
  }
  return true;
}

bool TakeSlice(const WorldSlice& slice, const BlockSlice& places, const SharedBlock& block) {
  BlockHead* const head = block.head();
  std::vector<WorldProgress> after(static_cast<size_t>(slice.worlds));
  Copy(head, places.progress, 0, slice.worlds, after.data());
  for (int64_t world = 0; world < slice.worlds; ++world) {
    if (!IsPossible(slice, slice.progress[world], after[world])) return false;
  }
  const int64_t rows = RowsOf(places) + 1;
  const int64_t state = AnsweredSize(places);
  const int64_t sensors = places.sizes.nsensordata;
  for (int64_t world = 0; world < slice.worlds; ++world) {
    if (slice.progress[world].end != WorldEnd::kNone) continue;
    WorldProgress& progress = after[world];
    const int64_t taken = progress.steps - slice.progress[world].steps;
    const int64_t answered = RowsTaken(places, progress);
    const auto row = [&](double* of_call, int64_t stride) {
      return of_call == nullptr ? nullptr : of_call + world * stride;
    };
    Copy(head, places.answered_states, world * rows * state, answered * state,
         row(slice.answered_states, slice.state_stride));
    Copy(head, places.answered_sensors, world * rows * sensors, answered * sensors,
         row(slice.answered_sensors, slice.sensor_stride));
    for (int64_t step = 0; slice.certificates != nullptr && step < taken; ++step) {
      slice.certificates[world * slice.certificate_stride + step] = Bounded(
          At<sap_mujoco_certificate>(head, places.certificates)[world * slice.steps + step]);
    }
    const std::string text = PrintableText(progress.message.data(), progress.message.size());
    progress.message = {};
    std::ranges::copy_n(text.data(), std::min(text.size(), progress.message.size() - 1),
                        progress.message.begin());
    slice.progress[world] = progress;
    const int64_t checkpoint = places.sizes.integration;
    Copy(head, places.checkpoints, world * checkpoint, checkpoint,
         row(slice.checkpoints, checkpoint));
  }
  return true;
}

}  // namespace sap
