// Which derivatives of a solution are asked for, and the rules for them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "solver/differentiate.h"
#include "solver/engine/engine_error.h"
#include "solver/engine/engine_limits.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/problem/derivatives.h"
#include "solver/problem/input_selection.h"

namespace sap {

class ContactProblem;

// Views of the caller's arrays.
struct DerivativesRequest {
  std::span<const double> velocity{};   // of the solution, which becomes the guess; or empty
  std::vector<Cotangent> cotangents{};  // one gradient each
  std::vector<ContactProblemView> directions{};  // one tangent each
  bool hold_delassus{false};                     // see DerivativeOptions
  // Inputs whose gradients are wanted, and the numbers of the regularization that are inputs; see
  // InputSelection.
  std::vector<std::string_view> wanted{};
  GivenRegularization given{};

  size_t count() const { return cotangents.size() + directions.size(); }
  size_t storage_bytes() const { return StorageBytes(cotangents, directions); }
};

// Predicted time of solving and computing this number of derivatives, as a multiple of the solve
// time.
double RelativeWork(size_t derivatives);

// Lengths and values; an error names the array. `problem` has been read from `view`.
EngineStatus CheckDerivatives(const DerivativesRequest& request, const ContactProblemView& view,
                              const ContactProblem& problem);

// How many derivatives there may be, and how much memory they may take: a bound from the counts of
// the problem, which need not be valid.
EngineStatus CheckNumber(size_t cotangents, size_t tangents, const EngineLimits& limits);
EngineStatus CheckMemory(size_t cotangents, size_t tangents, const ContactProblemView& problem,
                         const EngineLimits& limits);
// Upper bound of the memory that the derivatives take [bytes].
int64_t BytesOfDerivatives(size_t cotangents, size_t tangents, const ContactProblemView& problem);

}  // namespace sap
