#include "solver/problem/problem_differential.h"

#include "solver/problem/contact_problem.h"

namespace sap {

void ProblemDifferential::Reset(const ContactProblem& problem) {
  static_cast<SharedInputs&>(*this) = {};
  dynamics_matrix.assign(problem.dynamics_matrix().size(), 0.0);
  coupling_block.assign(problem.coupled_trees().blocks().size(), 0.0);
  v_star.assign(problem.v_star().size(), 0.0);
  jacobian.assign(problem.jacobian().size(), 0.0);
  const size_t contacts = problem.num_contacts();
  v_hat.assign(3 * contacts, 0.0);
  surface_velocity.assign(3 * contacts, 0.0);
  for (std::vector<double>* array : {&tau_d, &mu, &mu_2, &stiffness, &R_t, &R_n, &w, &adhesion}) {
    array->assign(contacts, 0.0);
  }
  hunt_crossley.assign(problem.hunt_crossley().size(), {});
  angular_friction.assign(problem.num_angular(), {});
  angular_jacobian.assign(problem.angular_jacobian().size(), 0.0);
  angular_v_hat.assign(problem.angular_v_hat().size(), 0.0);
  rows.assign(problem.num_rows(), {});
  row_coefficients.assign(problem.row_coefficients().size(), 0.0);
}

}  // namespace sap
