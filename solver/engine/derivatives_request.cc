#include "solver/engine/derivatives_request.h"

#include <string>

#include "solver/problem/contact_problem.h"
#include "solver/problem/input_differential.h"

namespace sap {

double RelativeWork(size_t derivatives) {
  // The polishing step with its factorization; the solve and the chain of each derivative.
  constexpr double kFactorization = 0.4;
  constexpr double kPerDerivative = 0.1;
  return 1 + kFactorization + kPerDerivative * static_cast<double>(derivatives);
}

EngineStatus CheckDerivatives(const DerivativesRequest& request, const ContactProblemView& view,
                              const ContactProblem& problem) {
  if (const auto checked = CheckVelocity(request.velocity, problem); !checked) {
    return RefuseField(checked.error());
  }
  if (const auto checked = CheckHeldDelassus(request.hold_delassus, problem); !checked) {
    return RefuseField(checked.error());
  }
  for (size_t i = 0; i < request.cotangents.size(); ++i) {
    if (const auto checked = CheckCotangent(request.cotangents[i], problem); !checked) {
      return RefuseField(checked.error(), "cotangents[" + std::to_string(i) + "].");
    }
  }
  for (size_t i = 0; i < request.directions.size(); ++i) {
    if (const auto checked = CheckDirection(view, request.directions[i]); !checked) {
      return RefuseField(checked.error(), "tangents[" + std::to_string(i) + "].");
    }
  }
  return {};
}

EngineStatus CheckNumber(size_t cotangents, size_t tangents, const EngineLimits& limits) {
  const size_t count = cotangents + tangents;
  if (count <= static_cast<size_t>(limits.max_derivatives)) return {};
  return RefuseField(cotangents > 0 ? "cotangents" : "tangents",
                     "and tangents are " + std::to_string(count) + "; at most " +
                         std::to_string(limits.max_derivatives) + " are accepted together");
}

EngineStatus CheckMemory(size_t cotangents, size_t tangents, const ContactProblemView& problem,
                         const EngineLimits& limits) {
  const int64_t bytes = BytesOfDerivatives(cotangents, tangents, problem);
  const int64_t allowed = limits.max_solve_memory_mib << 20;
  if (bytes <= allowed) return {};
  return tl::unexpected(EngineError{EngineErrorCode::kResourceExhausted,
                                    "these derivatives take up to " + Mebibytes(bytes) +
                                        "; a solve may take " + Mebibytes(allowed),
                                    "", "SOLVE_MEMORY"});
}

// Each derivative is a ProblemDifferential with the sums of its islands, at most one island per
// tree; bodies and their contacts have matrices and Jacobians there. A tangent also has the arrays
// of a solution.
int64_t BytesOfDerivatives(size_t cotangents, size_t tangents, const ContactProblemView& problem) {
  constexpr int64_t kBodyMatrix = 36, kBodyJacobian = 36;
  constexpr int64_t kPerTree = 6, kPerContact = 24,
                    kPerRow = sizeof(RowParameters) / sizeof(double);
  constexpr int64_t kSolutionPerContact = 10, kSolutionPerRow = 2, kSolution = 32;
  const auto count = [](const auto& array) { return static_cast<int64_t>(array.size()); };
  const int64_t bodies = count(problem.bodies.mass);
  const int64_t body_contacts = count(problem.body_contacts.body_a);
  const int64_t matrices = count(problem.trees.dynamics_matrix) +
                           count(problem.trees.coupling_block) + kBodyMatrix * bodies;
  const int64_t jacobians = count(problem.contacts.jacobian) +
                            count(problem.contacts.angular_jacobian) +
                            2 * kBodyJacobian * body_contacts;
  const int64_t velocities =
      count(problem.trees.free_motion_velocity) + count(problem.bodies.free_motion_velocity);
  const int64_t trees = count(problem.trees.dofs) + bodies;
  const int64_t contacts = CountContacts(problem.contacts) + body_contacts;
  const int64_t rows = count(problem.rows.entries);
  const int64_t derivative = matrices + jacobians + 2 * velocities + kPerTree * trees +
                             kPerContact * contacts + kPerRow * rows +
                             count(problem.rows.coefficient);
  const int64_t solution =
      kSolution + velocities + kSolutionPerContact * contacts + kSolutionPerRow * rows;
  return static_cast<int64_t>(sizeof(double)) *
         (static_cast<int64_t>(cotangents + tangents) * derivative +
          static_cast<int64_t>(tangents) * solution);
}

}  // namespace sap
