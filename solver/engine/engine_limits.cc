#include "solver/engine/engine_limits.h"

#include <algorithm>
#include <string>
#include <thread>

#include "solver/engine/cpu_quota.h"

namespace sap {
namespace {

int NumProcessors() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)); }

}  // namespace

EngineStatus CheckBatchSize(const char* field, size_t problems, const EngineLimits& limits) {
  if (problems <= static_cast<size_t>(limits.max_batch_problems)) return {};
  return RefuseField(field, "has " + std::to_string(problems) + " values; at most " +
                                std::to_string(limits.max_batch_problems) +
                                " are accepted in a batch");
}

tl::unexpected<EngineError> RefuseTimeBudgetInBatch() {
  return RefuseField("options.time_budget", "is given; in a batch there is one for all problems");
}

int DefaultThreads() { return ThreadsWithin(NumProcessors(), CpuQuota()); }

int DefaultIdleSpinners() { return SpinnersWithin(NumProcessors(), CpuQuota()); }

}  // namespace sap
