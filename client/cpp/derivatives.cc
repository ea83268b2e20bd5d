#include "client/cpp/derivatives.h"

#include <algorithm>

namespace sap::client {

const char* Name(AdjointStatus status) {
  switch (status) {
    case AdjointStatus::kDifferentiated:
      return "DIFFERENTIATED";
    case AdjointStatus::kInaccurate:
      return "INACCURATE";
    case AdjointStatus::kDeadline:
      return "DEADLINE";
    case AdjointStatus::kNumericalFailure:
      return "NUMERICAL_FAILURE";
  }
  return "UNKNOWN";
}

DifferentiateView ViewOf(const Problem& problem, std::span<const Cotangent> cotangents,
                         const DifferentiateOptions& options) {
  DifferentiateView view{
      .problem = ViewOf(problem), .solve = options.solve, .wanted = options.wanted};
  view.given.reference_time_step = problem.regularization.reference_time_step != 0;
  view.derivatives.velocity = options.velocity;
  view.derivatives.hold_delassus = options.hold_delassus;
  for (const Cotangent& cotangent : cotangents) {
    sap::Cotangent& arrays = view.derivatives.cotangents.emplace_back();
    arrays.cost = cotangent.cost;
    sap::Cotangent::ForEach(
        [](const auto&, int, OutputPer, auto& to, const auto& from) { to = from; }, arrays,
        cotangent);
  }
  for (const Problem& tangent : options.tangents) {
    view.derivatives.directions.push_back(ViewOf(tangent));
  }
  return view;
}

bool Derivatives::Accurate() const {
  return std::ranges::all_of(adjoint_status, [](AdjointStatus status) {
    return status == AdjointStatus::kDifferentiated;
  });
}

}  // namespace sap::client
