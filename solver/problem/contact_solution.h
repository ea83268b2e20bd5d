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

struct IslandReport {
  SolveStatus status{SolveStatus::kConverged};
  // Newton iterations, or Gauss-Seidel sweeps if `swept`; 0 if the guess met the tolerance.
  int iterations{0};
  // Solved by sweeps alone: they were asked for, or there was no time to plan a factorization.
  bool swept{false};
  int factorizations{0};  // of the Hessian
  // |D grad l| / max(|D A v|, |D J' gamma|), D = diag(A)^-1/2 [-].
  double momentum_residual{0};
  // l(v) - min l <= optimality_gap_bound [J], rounding errors allowed for, and with it
  // |v - v_opt|_A <= sqrt(2 optimality_gap_bound). Infinite if nothing could be certified.
  double optimality_gap_bound{0};
  double cost{0};  // l(v) [J]
  // Only for exact Coulomb friction, where the options ask for it: convex solves after the first,
  // and
  // |F|_{A^-1} with an allowance for rounding errors [kg^1/2 m/s]: v is an exact answer of the
  // problem whose v* is moved by at most so much in the norm of A. A backward error, not a
  // distance.
  int coulomb_rounds{0};
  double coulomb_defect{0};
  // Bound on the motion within the horizon of SolverOptions::rest, infinite if there is none
  // (newton/rest_certificate.h) [m; of articulated trees the unit of each degree of freedom].
  // Negative: not asked for.
  double rest_drift{-1};
  // Largest give of a contact or row beyond its stiffness, and largest slip of friction that holds
  // (solver/model/regularization_cost.h): what the regularization costs [m, rad; m/s, rad/s].
  double sag{0};
  double creep{0};
  int dofs{0};
  int contacts{0};
  int rows{0};
  double solve_time_s{0};
};

// Whether the reports are of exact Coulomb friction: a defect contains rounding errors, so that it
// is 0 nowhere but without it.
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
