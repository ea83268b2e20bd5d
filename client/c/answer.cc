#include "client/c/answer.h"

#include <utility>

#include "solver/problem/input_arrays.h"

namespace sap::c {
namespace {

sap_doubles ArrayOf(const std::vector<double>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

sap_int32s ArrayOf(const std::vector<int32_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

sap_uint32s ArrayOf(const std::vector<uint32_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

int32_t StatusOf(SolveStatus status) {
  switch (status) {
    case SolveStatus::kConverged:
      return SAP_ISLAND_CONVERGED;
    case SolveStatus::kStalledAtRoundoff:
      return SAP_ISLAND_STALLED_AT_ROUNDOFF;
    case SolveStatus::kIterationLimit:
      return SAP_ISLAND_ITERATION_LIMIT;
    case SolveStatus::kDeadline:
      return SAP_ISLAND_DEADLINE;
    case SolveStatus::kCancelled:
      return SAP_ISLAND_CANCELLED;
    case SolveStatus::kNumericalFailure:
      return SAP_ISLAND_NUMERICAL_FAILURE;
  }
  return 0;
}

int32_t StatusOf(AdjointStatus status) {
  switch (status) {
    case AdjointStatus::kDifferentiated:
      return SAP_ADJOINT_DIFFERENTIATED;
    case AdjointStatus::kInaccurate:
      return SAP_ADJOINT_INACCURATE;
    case AdjointStatus::kDeadline:
      return SAP_ADJOINT_DEADLINE;
    case AdjointStatus::kNumericalFailure:
      return SAP_ADJOINT_NUMERICAL_FAILURE;
  }
  return 0;
}

// Sets the arrays of a solution or tangent.
template <typename Outputs, typename Struct>
void PointAtOutputs(const Outputs& outputs, Struct* pointed) {
  Tangent::ForEach(
      [](const char*, int, OutputPer, auto& array, const auto& values) { array = ArrayOf(values); },
      *pointed, outputs);
}

// A struct of one group, with the arrays of the group.
template <typename Struct, typename Group>
Struct StructOf(const Group& group) {
  Struct result{};
  result.struct_size = sizeof result;
  Group::ForEach([](const auto&, auto& array, const auto& values) { array = ArrayOf(values); },
                 result, group);
  return result;
}

sap_contact_laws LawsOf(const InputDifferential::Law& law, sap_hunt_crossley* hunt_crossley) {
  *hunt_crossley = StructOf<sap_hunt_crossley>(law.hunt_crossley);
  auto laws = StructOf<sap_contact_laws>(law);
  laws.hunt_crossley = hunt_crossley;
  return laws;
}

// Empties the arrays that are not wanted, and sets the structs.
void PointAtWanted(const InputSelection& wanted, GradientStructs* structs) {
  InputDifferential& inputs = structs->inputs;
  size_t input = 0;
  const bool wants_time_step = wanted.wanted(input++);
  structs->regularization = {};
  structs->regularization.struct_size = sizeof structs->regularization;
  Regularization::ForEach(
      [&](const char*, bool is_input, const double*& pointer, const double& number) {
        pointer = is_input && wanted.wanted(input++) ? &number : nullptr;
      },
      structs->regularization, inputs.regularization);
  ForEachInput(
      [&](const FieldName&, std::vector<double>& array) {
        if (!wanted.wanted(input++)) array.clear();
      },
      inputs);
  structs->trees = StructOf<sap_trees>(inputs.trees);
  structs->bodies = StructOf<sap_bodies>(inputs.bodies);
  structs->contacts = StructOf<sap_contacts>(inputs.contacts);
  structs->contact_laws = LawsOf(inputs.contacts.law, &structs->contact_hunt_crossley);
  structs->contacts.laws = &structs->contact_laws;
  structs->body_contacts = StructOf<sap_body_contacts>(inputs.body_contacts);
  structs->body_contact_laws =
      LawsOf(inputs.body_contacts.law, &structs->body_contact_hunt_crossley);
  structs->body_contacts.laws = &structs->body_contact_laws;
  structs->rows = StructOf<sap_rows>(inputs.rows);
  structs->problem = {.struct_size = sizeof(sap_problem),
                      .time_step = wants_time_step ? inputs.time_step : 0,
                      .trees = &structs->trees,
                      .bodies = &structs->bodies,
                      .contacts = &structs->contacts,
                      .body_contacts = &structs->body_contacts,
                      .rows = &structs->rows,
                      .regularization = &structs->regularization};
  structs->gradient = {.problem = &structs->problem,
                       .applied_impulse = ArrayOf(structs->applied_impulse),
                       .delassus_estimate = ArrayOf(structs->delassus_estimate)};
}

}  // namespace

}  // namespace sap::c

void sap_answer::Clear() {
  solved_ = false;
  differentiated_ = false;
  forecast_found_ = false;
  error_struct_ = {.kind = SAP_OK, .message = "", .field = "", .reason = ""};
}

void sap_answer::SetError(sap::EngineError error) {
  Clear();
  error_ = std::move(error);
  error_struct_ = {.kind = static_cast<int32_t>(error_.code),
                   .message = error_.message.c_str(),
                   .field = error_.field.c_str(),
                   .reason = error_.reason.c_str()};
}

void sap_answer::SetForecast() {
  using sap::c::ArrayOf;
  Clear();
  forecast_struct_ = {.island_of_tree = ArrayOf(forecast.island_of_tree),
                      .solve_time_s = ArrayOf(forecast.solve_time_s)};
  forecast_found_ = true;
}

void sap_answer::SetSolution(double check_s, bool warm_started) {
  using sap::c::ArrayOf;
  Clear();
  SetIslands();
  solution_struct_ = {};
  sap::c::PointAtOutputs(solution, &solution_struct_);
  solution_struct_.cost = solution.cost;
  solution_struct_.island_of_tree = ArrayOf(solution.island_of_tree);
  solution_struct_.islands = &islands_struct_;
  solution_struct_.check_s = check_s;
  solution_struct_.islands_s = solution.times.islands_s;
  solution_struct_.solve_s = solution.times.solve_s;
  solution_struct_.warm_started = warm_started;
  solution_struct_.delassus_estimate = ArrayOf(solution.delassus_estimate);
  solved_ = true;
}

void sap_answer::SetIslands() {
  using sap::c::ArrayOf;
  const size_t count = solution.islands.size();
  status_.resize(count);
  for (auto* array : {&iterations_, &factorizations_, &dofs_, &contacts_, &rows_}) {
    array->resize(count);
  }
  for (auto* array : {&momentum_residual_, &optimality_gap_bound_, &solve_time_s_, &cost_}) {
    array->resize(count);
  }
  swept_.clear();
  for (size_t i = 0; i < count; ++i) {
    const sap::IslandReport& island = solution.islands[i];
    if (island.swept) swept_.push_back(static_cast<uint32_t>(i));
    status_[i] = sap::c::StatusOf(island.status);
    iterations_[i] = static_cast<uint32_t>(island.iterations);
    factorizations_[i] = static_cast<uint32_t>(island.factorizations);
    momentum_residual_[i] = island.momentum_residual;
    optimality_gap_bound_[i] = island.optimality_gap_bound;
    dofs_[i] = static_cast<uint32_t>(island.dofs);
    contacts_[i] = static_cast<uint32_t>(island.contacts);
    rows_[i] = static_cast<uint32_t>(island.rows);
    solve_time_s_[i] = island.solve_time_s;
    cost_[i] = island.cost;
  }
  islands_struct_ = {.status = ArrayOf(status_),
                     .iterations = ArrayOf(iterations_),
                     .factorizations = ArrayOf(factorizations_),
                     .momentum_residual = ArrayOf(momentum_residual_),
                     .optimality_gap_bound = ArrayOf(optimality_gap_bound_),
                     .dofs = ArrayOf(dofs_),
                     .contacts = ArrayOf(contacts_),
                     .rows = ArrayOf(rows_),
                     .solve_time_s = ArrayOf(solve_time_s_),
                     .swept = ArrayOf(swept_),
                     .cost = ArrayOf(cost_)};
}

void sap_answer::SetDerivatives(const sap::ContactProblemView& view,
                                const sap::ContactProblem& problem,
                                const sap::InputSelection& wanted) {
  using sap::c::ArrayOf;
  gradients_.resize(derivatives.gradients.size());
  gradient_list_.clear();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    gradients_[i] = std::make_unique<sap::c::GradientStructs>();
    sap::c::GradientStructs& structs = *gradients_[i];
    GradientToInputs(view, problem, i, &derivatives, &structs.inputs);
    sap::Gradient gradient = std::move(derivatives.gradients[i]);  // freed once it is converted
    if (wanted.applied_impulse()) structs.applied_impulse = std::move(gradient.applied_impulse);
    if (wanted.delassus_estimate()) structs.delassus_estimate = std::move(gradient.problem.w);
    sap::c::PointAtWanted(wanted, &structs);
    gradient_list_.push_back(&structs.gradient);
  }
  tangents_.clear();
  tangent_list_.clear();
  for (const sap::Tangent& tangent : derivatives.tangents) {
    sap::c::PointAtOutputs(tangent, &tangents_.emplace_back());
    tangents_.back().cost = tangent.cost;
  }
  for (const sap_tangent& tangent : tangents_) tangent_list_.push_back(&tangent);
  adjoint_status_.clear();
  for (const sap::AdjointStatus status : derivatives.adjoint_status) {
    adjoint_status_.push_back(sap::c::StatusOf(status));
  }
  derivatives_struct_ = {.num_gradients = static_cast<int64_t>(gradient_list_.size()),
                         .gradients = gradient_list_.data(),
                         .num_tangents = static_cast<int64_t>(tangent_list_.size()),
                         .tangents = tangent_list_.data(),
                         .kink_margin = ArrayOf(derivatives.kink_margin),
                         .adjoint_status = ArrayOf(adjoint_status_)};
  differentiated_ = true;
}
