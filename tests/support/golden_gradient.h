// Certified derivatives of solutions, read from the files of tests/data/gradients or, where
// SAP_PROBLEMS_GRADIENTS_DIR names a larger set, from there; and errors of an answer against them.
// See tests/data/README.md.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "solver/differentiate.h"
#include "solver/problem/input_differential.h"
#include "tests/support/golden_problem.h"

namespace sap::test {

// dL/d(input) by the wire name of each input; "applied_impulse" and "delassus_estimate" as well.
using NamedGradient = std::map<std::string, std::vector<double>>;

// A cotangent that owns its arrays.
struct CotangentArrays {
  std::vector<double> velocity, impulse, contact_velocity;
  std::vector<double> row_impulse, row_velocity, angular_impulse;
  double cost{0};

  Cotangent View() const;
};

struct GoldenGradients {
  ProblemArrays arrays;
  bool hold_delassus{false};
  std::vector<CotangentArrays> cotangents;
  // Gradients of each cotangent. At a kink there is one such list for each branch, any of which is
  // right.
  std::vector<std::vector<NamedGradient>> branches;
  std::vector<double> energy_bound;  // of lambda' A lambda at an apex, else empty
  std::vector<double> kink_margin;   // per island
  // By the name of the input: the size of its gradient, and the error allowed relative to it.
  std::map<std::string, double> scale, tolerance;
  std::set<std::string> ill_conditioned;  // inputs that are not judged
};

GoldenGradients LoadGoldenGradients(const std::string& name);

NamedGradient Named(const ContactProblemView& inputs, const ContactProblem& problem,
                    const Gradient& gradient);

// The largest error over what is allowed, and the input that has it.
struct GradientError {
  double over_allowed{0};
  std::string input;
};

// Error to the nearest branch. Infinite where an array is missing or not finite.
GradientError JudgeGradients(const GoldenGradients& golden,
                             const std::vector<NamedGradient>& actual);

// Whether all is finite and lambda' A lambda within the bound, which is all that is determined at
// an apex.
bool IsWithinEnergyBound(const GoldenGradients& golden, const ContactProblem& problem,
                         const std::vector<NamedGradient>& actual);

}  // namespace sap::test
