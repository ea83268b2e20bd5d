#include "solver/run/derivative_scatter.h"

#include <algorithm>
#include <cmath>

#include "solver/cholesky/dense_cholesky.h"

namespace sap {

namespace {

void ResetTangent(const ContactProblem& problem, Tangent* tangent) {
  tangent->cost = 0;
  tangent->velocity.assign(problem.num_velocities(), 0.0);
  tangent->impulse.assign(3 * static_cast<size_t>(problem.num_contacts()), 0.0);
  tangent->contact_velocity.assign(tangent->impulse.size(), 0.0);
  tangent->row_impulse.assign(problem.num_rows(), 0.0);
  tangent->row_velocity.assign(problem.num_rows(), 0.0);
  tangent->angular_impulse.assign(3 * static_cast<size_t>(problem.num_angular()), 0.0);
}

// v*_bar = v_bar and lambda = A^-1 v_bar of one tree; 0 where that is not finite.
void DifferentiateFreeTree(const ContactProblem& problem, int tree, const Cotangent& cotangent,
                           Gradient* gradient) {
  if (cotangent.velocity.empty()) return;
  const int start = problem.velocity_start()[tree];
  const int n = problem.dofs()[tree];
  const auto v_bar = cotangent.velocity.subspan(start, n);
  double* lambda = gradient->applied_impulse.data() + start;
  std::ranges::copy(v_bar, lambda);
  SolveTree(TreeFactor{problem.dynamics_factor().data() + problem.matrix_start()[tree],
                       problem.row_ends().data() + start},
            n, lambda);
  if (!std::all_of(lambda, lambda + n, [](double x) { return std::isfinite(x); })) {
    std::fill_n(lambda, n, 0.0);
    return;
  }
  std::ranges::copy(v_bar, gradient->problem.v_star.begin() + start);
}

}  // namespace

void PrepareDerivatives(const ContactProblem& problem, const ConstraintGraph& graph,
                        const DerivativeRequest& request, Derivatives* derivatives) {
  const int islands = graph.islands().count();
  derivatives->kink_margin.assign(islands, 0.0);
  derivatives->adjoint_status.assign(islands, AdjointStatus::kDeadline);
  derivatives->gradients.resize(request.cotangents.size());
  derivatives->tangents.resize(request.directions.size());
  for (Gradient& gradient : derivatives->gradients) {
    gradient.problem.Reset(problem);
    gradient.applied_impulse.assign(problem.num_velocities(), 0.0);
  }
  for (Tangent& tangent : derivatives->tangents) ResetTangent(problem, &tangent);
  for (int tree = 0; tree < problem.num_trees(); ++tree) {
    if (graph.islands().island_of_tree()[tree] >= 0) continue;
    for (size_t k = 0; k < request.cotangents.size(); ++k) {
      DifferentiateFreeTree(problem, tree, request.cotangents[k], &derivatives->gradients[k]);
    }
    const int start = problem.velocity_start()[tree];
    for (size_t k = 0; k < request.directions.size(); ++k) {
      std::copy_n(request.directions[k].v_star.begin() + start, problem.dofs()[tree],
                  derivatives->tangents[k].velocity.begin() + start);
    }
  }
}

void SumOverIslands(int islands, std::span<const SharedInputs> shared,
                    std::span<const double> tangent_costs, Derivatives* derivatives) {
  const size_t cotangents = derivatives->gradients.size();
  const size_t directions = derivatives->tangents.size();
  for (size_t k = 0; k < cotangents; ++k) {
    SharedInputs sum;
    for (int island = 0; island < islands; ++island) sum.Add(shared[island * cotangents + k]);
    static_cast<SharedInputs&>(derivatives->gradients[k].problem) = sum;
  }
  for (size_t k = 0; k < directions; ++k) {
    double& cost = derivatives->tangents[k].cost;
    for (int island = 0; island < islands; ++island) {
      cost += tangent_costs[island * directions + k];
    }
    if (std::isfinite(cost)) continue;
    cost = 0;
    std::ranges::fill(derivatives->adjoint_status, AdjointStatus::kNumericalFailure);
  }
}

}  // namespace sap
