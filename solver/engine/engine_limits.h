// Bounds on what one call may ask of the engine, and the threads of this process. The defaults are
// those of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "solver/engine/engine_error.h"
#include "solver/problem/problem_error.h"

namespace sap {

struct EngineLimits {
  ProblemLimits problem;
  int max_iterations{10'000};  // largest iteration limit that a caller may request
  // For the factorization of one problem, on all threads together, and for its derivatives. The
  // factorization of a pile of 30,000 bodies needs 3500 MiB.
  int64_t max_solve_memory_mib{4096};
  int max_batch_problems{4096};
  int max_derivatives{1024};  // cotangents and tangents of one problem
};

// Limits for a caller in this process: only the counts of a problem are bounded, since its memory
// follows from them.
inline constexpr EngineLimits kInProcessLimits{
    .problem = {},
    .max_iterations = std::numeric_limits<int>::max(),
    .max_solve_memory_mib = std::numeric_limits<int64_t>::max() >> 20,
    .max_batch_problems = std::numeric_limits<int>::max(),
    .max_derivatives = std::numeric_limits<int>::max()};

// `field` names the problems of a batch in errors.
EngineStatus CheckBatchSize(const char* field, size_t problems, const EngineLimits& limits);

// A problem of a batch has no time budget of its own.
tl::unexpected<EngineError> RefuseTimeBudgetInBatch();

// Processors, within the processor quota of the control group.
int DefaultThreads();
int DefaultIdleSpinners();

}  // namespace sap
