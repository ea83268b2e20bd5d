// The largest entries of a matrix and of a vector, by which they are scaled before they become
// floats. The same for any number of threads.
#pragma once

#include <span>

#include "solver/cholesky/elimination_plan.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// The largest entry on the diagonal, or 0 if none is positive. NaN is passed over.
double LargestDiagonalEntry(const EliminationPlan& plan, std::span<const double> diagonal,
                            TaskArena* arena);

// The largest absolute value.
double LargestEntry(std::span<const double> values, TaskArena* arena);

}  // namespace sap
