// One problem as it is asked for, and its answer.
#pragma once

#include <optional>

#include "solver/engine/derivatives_request.h"
#include "solver/engine/solve_settings.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/derivatives.h"
#include "solver/problem/problem_fields.h"
#include "solver/split/shared_islands.h"

namespace sap {

// Views of the caller's arrays.
struct SolveRequest {
  ContactProblemView problem;
  SolveSettings settings{};
  std::optional<DerivativesRequest> derivatives{};
  // Islands that the problems of a batch have in common, all of which have the same options; null:
  // none are looked for.
  SharedIslands* shared{nullptr};
};

struct SolveAnswer {
  ContactSolution solution{};  // all fields, also those that the mask leaves out
  Derivatives derivatives{};
  double check_s{0};         // time from the arrival of the call to the beginning of the solve
  bool warm_started{false};  // in a session: whether any velocity was found
};

}  // namespace sap
