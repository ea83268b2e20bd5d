// Outputs of MuJoCo's constraint stage other than accelerations and forces, for programs, plots and
// the viewer to read.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mujoco/fields.h"
#include "client/mujoco/trees.h"
#include "solver/problem/contact_solution.h"

namespace sap::mujoco {

// Writes efc_b, and the arrays in the order of islands: accelerations and forces of their dofs;
// forces, states and reference accelerations of their rows. Reads qacc, qfrc_constraint, efc_force
// and efc_state of the solution.
void StoreIslandArrays(const Fields& fields, bool is_sparse);

// Writes solver_niter, by islands, which both number by their lowest tree. Without MuJoCo's islands
// the first has the most iterations of all.
void StoreIterations(const Fields& fields, const ContactSolution& solution);

// Writes solver_niter, solver_nnz and the statistics of iterations of a solution of MuJoCo's own
// problem. Of the iterations of an island the last one alone has statistics: the norm of the
// gradient, scaled as MuJoCo does, and the active rows.
class SolverStatistics {
 public:
  void Store(const Fields& fields, const Trees& trees, const ContactSolution& solution,
             bool is_sparse);

 private:
  struct Island {
    int32_t active = 0;  // rows
    int64_t dofs = 0;
    int64_t non_zeros = 0;  // of the lower triangle of the Hessian, by trees
    double inertia = 0.0;   // sum of the diagonal of M
    double gradient_squared = 0.0;
  };

  void SumDofs(const Fields& fields, const Trees& trees, const ContactSolution& solution);
  void SumRows(const Fields& fields);
  void CountNonZeros(const Fields& fields, const Trees& trees, const ContactSolution& solution);

  std::vector<Island> islands_;
  std::vector<double> change_;    // [nv] qacc - qacc_smooth
  std::vector<double> gradient_;  // [nv]
  std::vector<int64_t> pairs_;    // trees that a row joins, as T a + b with a >= b
};

}  // namespace sap::mujoco
