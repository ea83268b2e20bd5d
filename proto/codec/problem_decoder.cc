#include "proto/codec/problem_decoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "proto/codec/problem_messages.h"
#include "solver/problem/input_checker.h"

namespace sap {
namespace {

ContactProblemView DecodeArrays(const v1::ContactProblem& message) {
  ContactProblemView view;
  view.time_step = message.time_step();
  ForEachMessageArray(
      [](const auto& field, auto& span) {
        span = {field.data(), static_cast<size_t>(field.size())};
      },
      message, view);
  return view;
}

tl::expected<DelassusRule, EngineError> DecodeRule(v1::RegularizationRule rule) {
  switch (rule) {
    case v1::REGULARIZATION_RULE_UNSPECIFIED:
    case v1::REGULARIZATION_RULE_FULL:
      return DelassusRule::kFull;
    case v1::REGULARIZATION_RULE_DIAGONAL:
      return DelassusRule::kDiagonal;
    case v1::REGULARIZATION_RULE_LOAD_PATH:
      return DelassusRule::kLoadPath;
    default:
      return RefuseField("regularization.rule",
                         "is " + std::to_string(rule) + "; this version knows 0, 1, 2 and 3");
  }
}

tl::expected<Regularization, EngineError> DecodePreset(v1::RegularizationPreset preset) {
  switch (preset) {
    case v1::REGULARIZATION_PRESET_UNSPECIFIED:
      return Regularization();
    case v1::REGULARIZATION_PRESET_RIGID:
      return Regularization::Rigid();
    default:
      return RefuseField("regularization.preset",
                         "is " + std::to_string(preset) + "; this version knows 0 and 1");
  }
}

tl::expected<NewtonMethod, EngineError> DecodeNewton(v1::NewtonMethod method) {
  switch (method) {
    case v1::NEWTON_METHOD_PLAIN:
      return NewtonMethod::kPlain;
    case v1::NEWTON_METHOD_UNSPECIFIED:
    case v1::NEWTON_METHOD_ACCELERATED:
      return NewtonMethod::kAccelerated;
    case v1::NEWTON_METHOD_GAUSS_SEIDEL:
      return NewtonMethod::kGaussSeidel;
    default:
      return RefuseField("options.newton",
                         "is " + std::to_string(method) + "; this version knows 0, 1, 2 and 3");
  }
}

tl::expected<InteriorPoint, EngineError> DecodeInteriorPoint(v1::InteriorPoint choice) {
  switch (choice) {
    case v1::INTERIOR_POINT_UNSPECIFIED:
    case v1::INTERIOR_POINT_AUTO:
      return InteriorPoint::kAuto;
    case v1::INTERIOR_POINT_NEVER:
      return InteriorPoint::kNever;
    case v1::INTERIOR_POINT_ALWAYS:
      return InteriorPoint::kAlways;
    default:
      return RefuseField("options.interior_point",
                         "is " + std::to_string(choice) + "; this version knows 0, 1, 2 and 3");
  }
}

}  // namespace

tl::expected<Regularization, EngineError> DecodeRegularization(const v1::Regularization& message) {
  const auto rule = DecodeRule(message.rule());
  if (!rule) return tl::unexpected(rule.error());
  auto regularization = DecodePreset(message.preset());
  if (!regularization) return regularization;
#define SAP_NUMBER(name, input) \
  if (message.has_##name()) regularization->name = message.name();
#include "solver/problem/problem_fields.inc"
  regularization->rule = *rule;
  return regularization;
}

tl::expected<ContactProblemView, EngineError> DecodeProblem(const v1::ContactProblem& message) {
  const v1::Regularization& given = message.regularization();
  const auto regularization = DecodeRegularization(given);
  if (!regularization) return tl::unexpected(regularization.error());
  ContactProblemView view = DecodeArrays(message);
  view.regularization = *regularization;
  if (given.has_reference_time_step()) {
    const auto checked = CheckReferenceTimeStep(given.reference_time_step());
    if (!checked) return RefuseField(checked.error());
  }
  return view;
}

ContactProblemView DecodeDirection(const v1::ContactProblem& message) {
  ContactProblemView view = DecodeArrays(message);
  const v1::Regularization& change = message.regularization();
#define SAP_NUMBER(name, input) \
  if (input) view.regularization.name = change.name();
#include "solver/problem/problem_fields.inc"
  return view;
}

tl::expected<std::chrono::nanoseconds, EngineError> DecodeTimeBudget(
    const google::protobuf::Duration& message, const std::string& field) {
  // Longer times overflow the integer of their nanoseconds.
  constexpr int64_t kLongest_s = 9'000'000'000;
  const int32_t nanos = message.nanos();
  if (nanos < 0 || nanos > 999'999'999) {
    return RefuseField(field,
                       "has " + std::to_string(nanos) + " nanos; they must be in [0, 999999999]");
  }
  const std::chrono::seconds seconds(std::clamp(message.seconds(), -kLongest_s, kLongest_s));
  return CheckTimeBudget(seconds + std::chrono::nanoseconds(nanos), field);
}

tl::expected<SolveSettings, EngineError> DecodeOptions(const v1::SolveOptions& message,
                                                       const EngineLimits& limits,
                                                       double default_tolerance) {
  GivenSettings given;
  SolverOptions& solver = given.solver;
  solver.relative_tolerance =
      message.has_relative_tolerance() ? message.relative_tolerance() : default_tolerance;
  if (message.has_absolute_speed_tolerance()) {
    solver.absolute_speed_tolerance = message.absolute_speed_tolerance();
  }
  if (message.has_coulomb()) {
    CoulombFriction& coulomb = solver.coulomb.emplace();
    if (message.coulomb().has_max_rounds()) coulomb.max_rounds = message.coulomb().max_rounds();
    if (message.coulomb().has_tolerance()) coulomb.tolerance = message.coulomb().tolerance();
  }
  if (message.has_rest()) {
    Rest& rest = solver.rest.emplace();
    if (message.rest().has_horizon()) rest.horizon = message.rest().horizon();
  }
  solver.max_iterations = message.has_max_iterations()
                              ? static_cast<int>(message.max_iterations())
                              : std::min(solver.max_iterations, limits.max_iterations);
  if (message.has_time_budget()) {
    const auto budget = DecodeTimeBudget(message.time_budget());
    if (!budget) return tl::unexpected(budget.error());
    given.time_budget = *budget;
  }
  if (message.has_islands()) solver.islands = message.islands();
  const auto newton = DecodeNewton(message.newton());
  if (!newton) return tl::unexpected(newton.error());
  solver.newton = *newton;
  const auto interior_point = DecodeInteriorPoint(message.interior_point());
  if (!interior_point) return tl::unexpected(interior_point.error());
  solver.interior_point = *interior_point;
  if (!v1::Priority_IsValid(message.priority())) {
    return RefuseField("options.priority",
                       "is " + std::to_string(message.priority()) + ", which is not a priority");
  }
  const auto& paths = message.response_mask().paths();
  given.mask = {paths.begin(), paths.end()};
  return CheckSettings(given, limits);
}

SolverOptions DecodeMethod(const v1::SolveOptions& message) {
  SolverOptions options;
  options.newton = DecodeNewton(message.newton()).value_or(options.newton);
  options.interior_point =
      DecodeInteriorPoint(message.interior_point()).value_or(options.interior_point);
  if (message.has_coulomb()) options.coulomb.emplace();
  return options;
}

double PredictedWork(const v1::ContactProblem& message, const v1::SolveOptions& options) {
  // PredictedSolveTime of the solver sums over islands, and the indices that join them are not
  // validated yet. One sum over all trees cannot fit both a pile and heaps: of the former it is a
  // quarter, of hundreds of the latter twenty times. Admission corrects it by measurements.
  constexpr double kPerContact_s = 1e-6;
  constexpr double kPerRow_s = 3e-7;
  constexpr double kPerFill_s = 5e-8;
  const int contacts = CountContacts(message.contacts()) + message.body_contacts().body_a_size();
  const double n =
      message.trees().free_motion_velocity_size() + message.bodies().free_motion_velocity_size();
  return RelativeWork(DecodeMethod(options)) *
         (kPerContact_s * contacts + kPerRow_s * message.rows().entries_size() +
          kPerFill_s * n * std::sqrt(n));
}

}  // namespace sap
