// The answer to one problem.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/problem/contact_solution.h"

namespace sap::client {

// Wall-clock time of each phase on the server [s].
struct PhaseTimings {
  double decode_s{0};
  double queue_s{0};
  double islands_s{0};
  double solve_s{0};
  double encode_s{0};
};

// How the solve of one island ended, with its certificate.
using Island = IslandReport;

// Shapes and units as in proto/sap/v1/solution.proto. Fields that the response mask left out are
// empty or 0.
struct Solution {
  std::vector<double> velocity;
  std::vector<double> impulse;
  std::vector<double> contact_velocity;
  std::vector<double> row_impulse;
  std::vector<double> row_velocity;
  std::vector<double> angular_impulse;
  std::vector<double> delassus_estimate;  // w of each contact, then of each body contact
  double cost{0};
  std::vector<int32_t> island_of_tree;
  std::vector<Island> islands;
  PhaseTimings timings;

  // Whether every island converged or stalled at round-off.
  bool Solved() const;
};

// "CONVERGED", ...
const char* Name(SolveStatus status);

}  // namespace sap::client
