#include "client/cpp/solution.h"

#include <algorithm>

namespace sap::client {

bool Solution::Solved() const {
  return std::ranges::all_of(islands, [](const Island& island) {
    return island.status == SolveStatus::kConverged ||
           island.status == SolveStatus::kStalledAtRoundoff;
  });
}

const char* Name(SolveStatus status) {
  switch (status) {
    case SolveStatus::kConverged:
      return "CONVERGED";
    case SolveStatus::kStalledAtRoundoff:
      return "STALLED_AT_ROUNDOFF";
    case SolveStatus::kIterationLimit:
      return "ITERATION_LIMIT";
    case SolveStatus::kDeadline:
      return "DEADLINE";
    case SolveStatus::kCancelled:
      return "CANCELLED";
    case SolveStatus::kNumericalFailure:
      return "NUMERICAL_FAILURE";
    case SolveStatus::kCoulombLimit:
      return "COULOMB_LIMIT";
  }
  return "UNKNOWN";
}

}  // namespace sap::client
