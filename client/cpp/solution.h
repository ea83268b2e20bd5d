// The answer to one problem.
#pragma once

#include "solver/problem/contact_solution.h"

namespace sap::client {

// Wall-clock time of each phase [s], on the server if there is one.
struct PhaseTimings {
  double decode_s{0};  // of the message; without one, checking the arrays
  double queue_s{0};
  double islands_s{0};
  double solve_s{0};
  double encode_s{0};
};

// Shapes and units as in proto/sap/v1/solution.proto. Fields that the response mask left out are
// empty or 0.
struct Solution : ContactSolution {
  PhaseTimings timings;  // in place of `times`, which a server does not send

  // Whether every island converged or stalled at round-off.
  bool Solved() const;
};

// How the solve of one island ended, with its certificate.
using Island = IslandReport;

// "CONVERGED", ...
const char* Name(SolveStatus status);

}  // namespace sap::client
