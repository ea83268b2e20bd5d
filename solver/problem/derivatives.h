// Derivatives of the solution of a contact problem: what is asked for, and the answer.
//
// Arrays keep the order of the problem, as those of ContactSolution do.
#pragma once

#include <cstdint>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "solver/problem/problem_differential.h"
#include "solver/problem/problem_error.h"
#include "solver/problem/problem_fields.h"

namespace sap {

class ContactProblem;

// Entities that an output has values for: velocities, contacts, rows, or contacts with an angular
// Jacobian.
enum class OutputPer : uint8_t { kVelocity, kContact, kRow, kAngularContact };

// A number for each output of a solution, in the shape of ContactSolution.
template <template <typename> typename Array>
struct OutputArrays {
#define SAP_OUTPUT(name, ...) Array<double> name{};
#include "solver/problem/solution_fields.inc"
  double cost{0};

  // visit(name, columns, per, outputs.name...) for each array, of any structs with these members.
  template <typename Visit, typename... Outputs>
  static void ForEach(const Visit& visit, Outputs&... outputs) {
#define SAP_OUTPUT(name, columns, per) visit(#name, columns, OutputPer::per, outputs.name...);
#include "solver/problem/solution_fields.inc"
  }
};

// dL/d(output). Empty arrays are 0.
using Cotangent = OutputArrays<ConstSpan>;

// d(output) along a direction of the problem.
using Tangent = OutputArrays<OwnedArray>;

// Each array is finite and of the length of its output, or empty.
tl::expected<void, ProblemError> CheckCotangent(const Cotangent& cotangent,
                                                const ContactProblem& problem);

// Checks the velocity at which to differentiate.
tl::expected<void, ProblemError> CheckVelocity(std::span<const double> velocity,
                                               const ContactProblem& problem);

// The estimates w of some rules have no derivatives and have to count as constants.
tl::expected<void, ProblemError> CheckHeldDelassus(bool hold_delassus,
                                                   const ContactProblem& problem);

// dL/d(problem) of one cotangent.
struct Gradient {
  ProblemDifferential problem;
  std::vector<double> applied_impulse;  // dL/d(A v* at fixed A): lambda, less c (v - v*)
};

enum class AdjointStatus : uint8_t {
  kDifferentiated,
  kInaccurate,        // at an iterate that does not meet the tolerance, or by an inexact factor
  kDeadline,          // not computed: 0
  kNumericalFailure,  // left the range of double precision: 0; all islands if after them
};

struct Derivatives {
  std::vector<Gradient> gradients;            // one per cotangent
  std::vector<Tangent> tangents;              // one per direction
  std::vector<double> kink_margin;            // per island, in [0, 1]
  std::vector<AdjointStatus> adjoint_status;  // per island
};

}  // namespace sap
