// A bound on the memory of a solve, from the counts of its problem, which need not be valid.
#pragma once

#include <cstdint>

#include "solver/engine/engine_error.h"
#include "solver/engine/engine_limits.h"
#include "solver/problem/problem_fields.h"
#include "solver/problem/solver_options.h"

namespace sap {

class ShardedProblem;

// Bytes that ContactProblem, Solver and ContactSolution take together, at most, without factors and
// derivatives, which have bounds of their own (SolverOptions::max_factor_bytes,
// BytesOfDerivatives). Of the options, only those of the method matter.
int64_t BytesOfSolve(const ContactProblemView& view, const SolverOptions& options = {});

// The same for a scene that `threads` threads solve shard by shard: its workspaces, indices and
// answer, and the ContactProblem that is read where a value is refused.
int64_t BytesOfSolve(const ShardedProblem& scene, const SolverOptions& options, int threads);

// RESOURCE_EXHAUSTED if that is more than EngineLimits::max_solve_memory_mib.
EngineStatus CheckSolveMemory(int64_t bytes, const EngineLimits& limits);

}  // namespace sap
