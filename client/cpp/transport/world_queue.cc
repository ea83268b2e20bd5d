#include "client/cpp/transport/world_queue.h"

#include <cmath>

namespace sap::client {
namespace {

// Predicted time of a slice at its server: a short one is soon repeated where it is lost, and
// servers end together.
constexpr double kSlice_s = 0.05;
// Longest predicted time of one world: its steps follow each other, so that each slice of them
// costs a round trip.
constexpr double kOneWorld_s = 0.5;
// Least time of a slice that is worth a call.
constexpr double kLeast_s = 0.002;
// From this predicted time of all worlds on, in slices of all servers, these are smaller.
constexpr double kBalanced_s = 0.01;
// Steps of worlds in a slice while their time is not known.
constexpr int64_t kUnknown = 64;
// Limits of the schema.
constexpr int64_t kMostWorlds = 65'536;
constexpr int64_t kMostSteps = 1'000'000;

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Floor(double value, int64_t most) {
  if (!(value < static_cast<double>(most))) return most;
  return static_cast<int64_t>(value);
}

}  // namespace

WorldQueue::WorldQueue(std::span<const WorldModel* const> model_of, int64_t steps, int64_t every)
    : steps_(steps), every_(every), all_worlds_(static_cast<int64_t>(model_of.size())) {
  for (int64_t begin = 0; begin < all_worlds_;) {
    int64_t end = begin + 1;
    while (end < all_worlds_ && model_of[end] == model_of[begin]) ++end;
    ranges_.push_back({.begin = begin, .end = end, .first_step = 0, .steps = steps});
    begin = end;
  }
}

WorldSlice WorldQueue::Acquire(const SliceLimits& limits) {
  WorldSlice range = ranges_.front();
  ranges_.pop_front();
  WorldSlice slice = range;
  slice.steps = StepsOf(range, limits);
  slice.end = range.begin + WorldsOf(range, slice.steps, limits);
  // The other worlds wait here, later steps of the slice at its end.
  if (slice.end < range.end) {
    range.begin = slice.end;
    ranges_.push_front(range);
  }
  return slice;
}

void WorldQueue::Continue(const WorldSlice& slice,
                          const std::function<bool(int64_t world)>& goes_on) {
  WorldSlice rest{.first_step = slice.first_step + slice.steps};
  rest.steps = steps_ - rest.first_step;
  if (rest.steps <= 0) return;
  for (int64_t begin = slice.begin; begin < slice.end;) {
    int64_t end = begin;
    while (end < slice.end && goes_on(end)) ++end;
    rest.begin = begin;
    rest.end = end;
    if (begin < end) ranges_.push_back(rest);
    begin = end + 1;
  }
}

// Rows are those of every `every_`-th step, so a slice that is not the last has a multiple.
int64_t WorldQueue::StepsOf(const WorldSlice& range, const SliceLimits& limits) const {
  const double by_bytes =
      (static_cast<double>(limits.bytes) - limits.bytes_per_world) / limits.bytes_per_step;
  int64_t steps = std::min(range.steps, Floor(by_bytes, kMostSteps));
  if (limits.step_s > 0) {
    steps = std::min(steps, Floor(kOneWorld_s / limits.step_s, kMostSteps));
  } else {
    steps = std::min(steps, kUnknown);
  }
  if (steps < range.steps) steps = std::max(steps / every_, int64_t{1}) * every_;
  return std::clamp(steps, int64_t{1}, range.steps);
}

int64_t WorldQueue::WorldsOf(const WorldSlice& range, int64_t steps,
                             const SliceLimits& limits) const {
  const auto threads = static_cast<int64_t>(std::max(limits.threads, 1));
  const auto servers = static_cast<int64_t>(std::max(limits.servers, 1));
  const double bytes = limits.bytes_per_world + static_cast<double>(steps) * limits.bytes_per_step;
  int64_t worlds =
      std::min(kMostWorlds, Floor(static_cast<double>(limits.bytes) / bytes, range.worlds()));
  if (!(limits.step_s > 0)) {
    worlds = std::min(worlds, std::max(kUnknown / steps, threads));
  } else {
    const double one_s = limits.step_s * static_cast<double>(steps);
    const int64_t in_time = threads * std::max(Floor(kSlice_s / one_s, kMostWorlds), int64_t{1});
    // Two slices at each server: while one is on its way, the other one is stepped.
    const double all_s =
        limits.step_s * static_cast<double>(all_worlds_ * steps_) / static_cast<double>(threads);
    int64_t parts = std::clamp(Floor(all_s / kLeast_s, 2 * servers), int64_t{1}, 2 * servers);
    if (servers > 1 && all_s > static_cast<double>(4 * servers) * kBalanced_s) parts *= 2;
    const int64_t share = Ceil(Ceil(all_worlds_, parts), threads) * threads;
    worlds = std::min({worlds, in_time, share});
  }
  return std::clamp(worlds, int64_t{1}, range.worlds());
}

}  // namespace sap::client
