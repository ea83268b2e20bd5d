// Derivatives of the solution of a problem, in SI units: gradients of a number L with respect to
// the inputs (reverse mode), and changes of the solution along a direction of them (forward mode).
//
//   const auto derivatives = client->Differentiate(problem, {{.velocity = dL_dv}});
//   derivatives->gradients[0].problem.contacts.law.friction   // dL/d mu, per contact
//
// Meanings, lengths and units are those of proto/sap/v1/gradient.proto. Each input is
// differentiated with all others held; at a kink the derivative is that of the branch which the
// solver takes.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/cpp/problem.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"
#include "solver/differentiate.h"
#include "solver/engine/derivatives_request.h"
#include "solver/problem/input_selection.h"

namespace sap::client {

// dL/d(output), in the shape of Solution. Empty arrays are 0.
using Cotangent = OutputArrays<OwnedArray>;

// d(output) along a direction of the inputs, in the shape of Solution.
using sap::Tangent;

// d(input) or dL/d(input), in place of each input of a problem. Arrays of indices, identifiers,
// laws and guesses are empty; so is what has not been asked for, and 0 is what is no array.
struct ProblemDerivative : Problem {
  ProblemDerivative() {
#define SAP_NUMBER(name, input) regularization.name = 0;
#include "solver/problem/problem_fields.inc"
  }
};

// dL/d(input) of one cotangent.
struct Gradient {
  ProblemDerivative problem;
  std::vector<double> applied_impulse;    // dL/d(impulse added to the momentum A v*)
  std::vector<double> delassus_estimate;  // dL/dw of each contact, then of each body contact
};

inline SolveOptions WithTolerance(double relative_tolerance) {
  SolveOptions options;
  options.solver.relative_tolerance = relative_tolerance;
  return options;
}

struct DifferentiateOptions {
  SolveOptions solve = WithTolerance(kDerivativeTolerance);
  // Inputs to return in gradients, as "contacts.friction", "bodies" or "applied_impulse"; empty:
  // all but dynamics_matrix, coupling_block, jacobian and angular_jacobian.
  std::vector<std::string> wanted{};
  bool hold_delassus{false};  // whether the Delassus estimates w count as constants
  // The solution, if it is at hand. It replaces the guess; islands where it meets the tolerance
  // report 0 iterations, others are solved from there.
  std::vector<double> velocity{};
  std::vector<ProblemDerivative> tangents{};  // forward mode: one Tangent is returned for each
};

// "DIFFERENTIATED", ...
const char* Name(AdjointStatus status);

struct Derivatives {
  Solution solution;                          // at which the derivatives were taken
  std::vector<Gradient> gradients;            // one per cotangent
  std::vector<Tangent> tangents;              // one per tangent of the options
  std::vector<double> kink_margin;            // per island, in [0, 1]
  std::vector<AdjointStatus> adjoint_status;  // per island

  // Whether every island was differentiated at a solution within the tolerance.
  bool Accurate() const;
};

// One problem of a batch.
struct DifferentiateRequest {
  Problem problem;
  std::vector<Cotangent> cotangents;
  DifferentiateOptions options;  // without time budget and deadline
};

// The request of a call of Differentiate, as views of arrays that outlive it.
struct DifferentiateView {
  ContactProblemView problem;
  DerivativesRequest derivatives{};  // cotangents, directions, velocity, hold_delassus
  SolveOptions solve = WithTolerance(kDerivativeTolerance);
  std::vector<std::string> wanted{};
  // Numbers of the regularization that were given: they alone are inputs, which have derivatives.
  GivenRegularization given{.beta = true, .sigma = true, .row_beta = true, .stiction_speed = true};
};

DifferentiateView ViewOf(const Problem& problem, std::span<const Cotangent> cotangents,
                         const DifferentiateOptions& options);

// Limits of a whole batch, as in SolveOptions.
struct BatchLimits {
  std::optional<std::chrono::nanoseconds> time_budget{};
  std::optional<std::chrono::nanoseconds> deadline{};
  CallOptions call{};
};

}  // namespace sap::client
