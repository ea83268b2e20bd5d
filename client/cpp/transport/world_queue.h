// Worlds that wait to be stepped, and the slices of them that calls take: some worlds, some steps.
// No I/O. Internal.
//
//   worlds at step 0 -> Acquire -> a call -> Continue: the same worlds at a later step
//                                         -> Return: lost, or refused
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "client/cpp/worlds.h"

namespace sap::client {

// Worlds [begin, end) of one model, steps [first_step, first_step + steps).
struct WorldSlice {
  int64_t begin{0};
  int64_t end{0};
  int64_t first_step{0};
  int64_t steps{0};
  int lost_attempts{0};
  int lost_at{-1};  // number of the server where the last attempt was lost; -1: none was

  int64_t worlds() const { return end - begin; }
  int64_t world_steps() const { return worlds() * steps; }
};

// Sizes of calls. What is measured decides how many worlds and steps a slice has.
struct SliceLimits {
  double step_s{0};  // time of a thread for a step of a world [s]; 0: not known yet
  int threads{1};    // of a server
  int servers{1};    // that calls go to
  int64_t bytes{0};  // of a call
  double bytes_per_world{0};
  double bytes_per_step{0};  // of a world
};

class WorldQueue {
 public:
  // Worlds with the same number follow each other: `model_of` tells the model of each.
  WorldQueue(std::span<const WorldModel* const> model_of, int64_t steps, int64_t every);

  bool empty() const { return ranges_.empty(); }
  // The worlds and steps that come next.
  const WorldSlice& front() const { return ranges_.front(); }

  // A slice of the front. One that was returned is passed on as it is, unless it is too large.
  WorldSlice Acquire(const SliceLimits& limits);
  // It comes next.
  void Return(const WorldSlice& slice) { ranges_.push_front(slice); }
  // The worlds of an answered slice that go on wait at its end.
  void Continue(const WorldSlice& slice, const std::function<bool(int64_t world)>& goes_on);

 private:
  int64_t StepsOf(const WorldSlice& range, const SliceLimits& limits) const;
  int64_t WorldsOf(const WorldSlice& range, int64_t steps, const SliceLimits& limits) const;

  const int64_t steps_;
  const int64_t every_;
  const int64_t all_worlds_;
  std::deque<WorldSlice> ranges_;  // `steps` is what is left of each
};

}  // namespace sap::client
