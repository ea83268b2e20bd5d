// The answer to one contact problem: velocities, impulses, and for every island an outcome with its
// certificate.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/parallel/storage_bytes.h"

namespace sap {

enum class SolveStatus : uint8_t {
  kConverged,          // the momentum residual meets the tolerance
  kStalledAtRoundoff,  // rounding errors allow no further progress
  kIterationLimit,
  kDeadline,
  kCancelled,         // the answer is not wanted: the guess, no impulses, nothing certified
  kNumericalFailure,  // left the range of double precision
  kCoulombLimit,      // the rounds of exact Coulomb friction are used up
};

// When the numbers of a report are sent, of all islands.
enum class Sent : uint8_t {
  kAlways,
  kLater,    // by servers that know them
  kCoulomb,  // with exact Coulomb friction
  kRest,     // where SolverOptions::rest asks for them
};

// The other members are in solution_fields.inc.
struct IslandReport {
  SolveStatus status{SolveStatus::kConverged};
  // Solved by sweeps alone: they were asked for, or there was no time to plan a factorization.
  bool swept{false};
#define SAP_REPORT(type, name, sent, none) type name{none};
#include "solver/problem/solution_fields.inc"
};

// A defect contains rounding errors, so that it is 0 in all islands only without exact Coulomb
// friction.
inline bool HasCoulombReports(const std::vector<IslandReport>& islands) {
  for (const IslandReport& island : islands) {
    if (island.coulomb_rounds > 0 || island.coulomb_defect > 0) return true;
  }
  return false;
}

// Whether the reports have bounds on motion: all have, or none.
inline bool HasRestReports(const std::vector<IslandReport>& islands) {
  return !islands.empty() && islands.front().rest_drift >= 0;
}

// Whether the numbers of this column are sent.
inline bool IsSent(Sent sent, const std::vector<IslandReport>& islands) {
  if (sent == Sent::kCoulomb) return HasCoulombReports(islands);
  return sent != Sent::kRest || HasRestReports(islands);
}

struct SolveTimes {
  double islands_s{0};  // layout: finding islands, planning their factorizations, memory
  double solve_s{0};    // gathering their data, solving them, and scattering the answer
};

// Arrays keep the order of the problem: trees, then bodies; contacts, then body contacts; rows.
struct ContactSolution {
  std::vector<double> velocity;  // v [m/s, rad/s], sum of n_t
  std::vector<double> impulse;   // gamma in (t1, t2, n) of each contact [N s], 3 per contact
  std::vector<double> contact_velocity;  // v_c in (t1, t2, n), surface velocity included [m/s]
  // w of each contact as it was used, 0 where no parameter of its law depends on it [1/kg]
  std::vector<double> delassus_estimate;
  std::vector<double> row_impulse;      // gamma of each row [N s, N m s]
  std::vector<double> row_velocity;     // v_c of each row, offset included [m/s, rad/s]
  std::vector<double> angular_impulse;  // about (t1, t2, n), 3 per contact with an angular Jacobian
  double cost{0};                       // l(v), summed over islands [J]
  std::vector<int32_t> island_of_tree;  // dense island number, by lowest tree; -1: no constraint
  std::vector<IslandReport> islands;
  SolveTimes times;
  // Islands that were solved in another problem of the batch and copied, and their contacts and
  // rows.
  int shared_islands{0};
  int64_t shared_constraints{0};

  size_t storage_bytes() const {
    return StorageBytes(velocity, impulse, contact_velocity, delassus_estimate, row_impulse,
                        row_velocity, angular_impulse, island_of_tree, islands);
  }
};

}  // namespace sap
