#include "client/c/answer.h"

#include <utility>

#include "solver/problem/input_arrays.h"

namespace sap::c {
namespace {

sap_doubles Doubles(const std::vector<double>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

sap_int32s Int32s(const std::vector<int32_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

sap_uint32s Uint32s(const std::vector<uint32_t>& values) {
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

sap_contact_laws LawsOf(const InputDifferential::Law& law, sap_hunt_crossley* hunt_crossley) {
  *hunt_crossley = {.struct_size = sizeof *hunt_crossley,
                    .elastic_force = Doubles(law.hunt_crossley.elastic_force),
                    .dissipation = Doubles(law.hunt_crossley.dissipation),
                    .lagged_normal_impulse = Doubles(law.hunt_crossley.lagged_normal_impulse)};
  return {.struct_size = sizeof(sap_contact_laws),
          .signed_distance = Doubles(law.signed_distance),
          .stiffness = Doubles(law.stiffness),
          .relaxation_time = Doubles(law.relaxation_time),
          .friction = Doubles(law.friction),
          .regularization_t = Doubles(law.regularization_t),
          .regularization_n = Doubles(law.regularization_n),
          .delassus_estimate = Doubles(law.delassus_estimate),
          .surface_velocity = Doubles(law.surface_velocity),
          .friction_2 = Doubles(law.friction_2),
          .torsional_friction = Doubles(law.torsional_friction),
          .rolling_friction = Doubles(law.rolling_friction),
          .target_velocity = Doubles(law.target_velocity),
          .target_angular_velocity = Doubles(law.target_angular_velocity),
          .adhesion = Doubles(law.adhesion),
          .law = {},
          .hunt_crossley = hunt_crossley};
}

sap_rows RowsOf(const InputDifferential::Rows& rows) {
  return {.struct_size = sizeof(sap_rows),
          .entries = {},
          .velocity_index = {},
          .coefficient = Doubles(rows.coefficient),
          .position_error = Doubles(rows.position_error),
          .velocity_offset = Doubles(rows.velocity_offset),
          .stiffness = Doubles(rows.stiffness),
          .relaxation_time = Doubles(rows.relaxation_time),
          .force_lower = Doubles(rows.force_lower),
          .force_upper = Doubles(rows.force_upper),
          .regularization = Doubles(rows.regularization),
          .target_velocity = Doubles(rows.target_velocity),
          .delassus_estimate = Doubles(rows.delassus_estimate),
          .slip_parameter = Doubles(rows.slip_parameter),
          .force_offset = Doubles(rows.force_offset)};
}

// Empties the arrays that are not wanted, and sets the structs.
void PointAtWanted(const InputSelection& wanted, GradientStructs* structs) {
  InputDifferential& inputs = structs->inputs;
  size_t input = kNumberInputs;
  ForEachInput(
      [&](const FieldName&, std::vector<double>& array) {
        if (!wanted.wanted(input++)) array.clear();
      },
      inputs);
  structs->trees = {.struct_size = sizeof(sap_trees),
                    .dofs = {},
                    .dynamics_matrix = Doubles(inputs.trees.dynamics_matrix),
                    .free_motion_velocity = Doubles(inputs.trees.free_motion_velocity),
                    .guess_velocity = {},
                    .tree_id = {},
                    .initial_velocity = {}};
  structs->bodies = {.struct_size = sizeof(sap_bodies),
                     .mass = Doubles(inputs.bodies.mass),
                     .inertia = Doubles(inputs.bodies.inertia),
                     .center_of_mass = Doubles(inputs.bodies.center_of_mass),
                     .free_motion_velocity = Doubles(inputs.bodies.free_motion_velocity),
                     .guess_velocity = {},
                     .body_id = {},
                     .initial_velocity = {}};
  structs->contact_laws = LawsOf(inputs.contacts.law, &structs->contact_hunt_crossley);
  structs->contacts = {.struct_size = sizeof(sap_contacts),
                       .tree_a = {},
                       .tree_b = {},
                       .jacobian = Doubles(inputs.contacts.jacobian),
                       .angular_jacobian = Doubles(inputs.contacts.angular_jacobian),
                       .laws = &structs->contact_laws};
  structs->body_contact_laws =
      LawsOf(inputs.body_contacts.law, &structs->body_contact_hunt_crossley);
  structs->body_contacts = {.struct_size = sizeof(sap_body_contacts),
                            .body_a = {},
                            .body_b = {},
                            .point = Doubles(inputs.body_contacts.point),
                            .normal = Doubles(inputs.body_contacts.normal),
                            .tangent = Doubles(inputs.body_contacts.tangent),
                            .laws = &structs->body_contact_laws};
  structs->rows = RowsOf(inputs.rows);
  const auto& numbers = inputs.regularization;
  const auto if_wanted = [&](size_t i, const double& value) {
    return wanted.wanted(i) ? &value : nullptr;
  };
  structs->regularization = {.struct_size = sizeof(sap_regularization),
                             .beta = if_wanted(1, numbers.beta),
                             .sigma = if_wanted(2, numbers.sigma),
                             .row_beta = if_wanted(3, numbers.row_beta),
                             .stiction_speed = if_wanted(4, numbers.stiction_speed),
                             .rule = 0,
                             .load_reference_speed = nullptr};
  structs->problem = {.struct_size = sizeof(sap_problem),
                      .time_step = wanted.wanted(0) ? inputs.time_step : 0,
                      .trees = &structs->trees,
                      .bodies = &structs->bodies,
                      .contacts = &structs->contacts,
                      .body_contacts = &structs->body_contacts,
                      .rows = &structs->rows,
                      .regularization = &structs->regularization};
  structs->gradient = {.problem = &structs->problem,
                       .applied_impulse = Doubles(structs->applied_impulse),
                       .delassus_estimate = Doubles(structs->delassus_estimate)};
}

}  // namespace

Error Refusal(const ProblemError& error, const std::string& within) {
  std::string field = within + error.field;
  if (error.index >= 0) field.append("[").append(std::to_string(error.index)).append("]");
  std::string message = field + " " + error.reason;
  return {SAP_INVALID_ARGUMENT, std::move(message), std::move(field)};
}

}  // namespace sap::c

void sap_answer::SetError(sap::c::Error new_error) {
  solved_ = false;
  differentiated_ = false;
  forecast_found_ = false;
  error_ = std::move(new_error);
  error_struct_ = {.kind = error_.kind,
                   .message = error_.message.c_str(),
                   .field = error_.field.c_str(),
                   .reason = error_.reason.c_str()};
}

void sap_answer::SetForecast() {
  SetError({});
  forecast_struct_ = {.island_of_tree = sap::c::Int32s(forecast.island_of_tree),
                      .solve_time_s = sap::c::Doubles(forecast.solve_time_s)};
  forecast_found_ = true;
}

void sap_answer::SetSolution(double check_s, bool warm_started) {
  using sap::c::Doubles;
  using sap::c::Int32s;
  SetError({});
  SetIslands();
  solution_struct_ = {.velocity = Doubles(solution.velocity),
                      .impulse = Doubles(solution.impulse),
                      .contact_velocity = Doubles(solution.contact_velocity),
                      .row_impulse = Doubles(solution.row_impulse),
                      .row_velocity = Doubles(solution.row_velocity),
                      .angular_impulse = Doubles(solution.angular_impulse),
                      .cost = solution.cost,
                      .island_of_tree = Int32s(solution.island_of_tree),
                      .islands = &islands_struct_,
                      .check_s = check_s,
                      .islands_s = solution.times.islands_s,
                      .solve_s = solution.times.solve_s,
                      .warm_started = warm_started,
                      .delassus_estimate = Doubles(solution.delassus_estimate)};
  solved_ = true;
}

void sap_answer::SetIslands() {
  using sap::c::Doubles;
  using sap::c::Int32s;
  using sap::c::Uint32s;
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
  islands_struct_ = {.status = Int32s(status_),
                     .iterations = Uint32s(iterations_),
                     .factorizations = Uint32s(factorizations_),
                     .momentum_residual = Doubles(momentum_residual_),
                     .optimality_gap_bound = Doubles(optimality_gap_bound_),
                     .dofs = Uint32s(dofs_),
                     .contacts = Uint32s(contacts_),
                     .rows = Uint32s(rows_),
                     .solve_time_s = Doubles(solve_time_s_),
                     .swept = Uint32s(swept_),
                     .cost = Doubles(cost_)};
}

void sap_answer::SetDerivatives(const sap::ContactProblemView& view,
                                const sap::ContactProblem& problem,
                                const sap::InputSelection& wanted) {
  using sap::c::Doubles;
  using sap::c::Int32s;
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
    tangents_.push_back({.velocity = Doubles(tangent.velocity),
                         .impulse = Doubles(tangent.impulse),
                         .contact_velocity = Doubles(tangent.contact_velocity),
                         .row_impulse = Doubles(tangent.row_impulse),
                         .row_velocity = Doubles(tangent.row_velocity),
                         .angular_impulse = Doubles(tangent.angular_impulse),
                         .cost = tangent.cost});
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
                         .kink_margin = Doubles(derivatives.kink_margin),
                         .adjoint_status = Int32s(adjoint_status_)};
  differentiated_ = true;
}
