// Counts of what became of the steps, in memory that all processes of a run share.
#pragma once

#include <atomic>
#include <cstdint>

namespace sap::mujoco {

enum Outcome : int {
#define SAP_OUTCOME(name, is_said, text) name,
#include "client/mujoco/preload/outcomes.inc"
  kNumOutcomes
};

// As in the file of the report, which begins with zeros.
struct Report {
  std::atomic<int64_t> mujoco_version;
  std::atomic<int64_t> islands;              // solved
  std::atomic<int64_t> steps[kNumOutcomes];  // RK4 has four stages with constraints in a step
  std::atomic<int64_t> said[kNumOutcomes];   // processes that found an outcome first: 0 or more
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Counts a step. The first one of an outcome that users have to know is reported.
void Count(Outcome outcome, int64_t islands);

void CountVersion(int version);

// Shares the counts with whoever maps this file of the size of a Report. Without one, or if it
// cannot be mapped, they are this process's own.
void ShareReport(const char* path);

}  // namespace sap::mujoco
