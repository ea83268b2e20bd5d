#include "client/cpp/transport/message_conversion.h"

#include <grpcpp/support/status_code_enum.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace sap::client {
namespace {

using google::protobuf::RepeatedField;

constexpr std::pair<int, ErrorCode> kCodes[] = {
    {grpc::StatusCode::INVALID_ARGUMENT, ErrorCode::kInvalidArgument},
    {grpc::StatusCode::RESOURCE_EXHAUSTED, ErrorCode::kResourceExhausted},
    {grpc::StatusCode::UNAUTHENTICATED, ErrorCode::kUnauthenticated},
    {grpc::StatusCode::PERMISSION_DENIED, ErrorCode::kPermissionDenied},
    {grpc::StatusCode::FAILED_PRECONDITION, ErrorCode::kFailedPrecondition},
    {grpc::StatusCode::ABORTED, ErrorCode::kAborted},
    {grpc::StatusCode::DEADLINE_EXCEEDED, ErrorCode::kDeadlineExceeded},
    {grpc::StatusCode::CANCELLED, ErrorCode::kCancelled},
    {grpc::StatusCode::UNAVAILABLE, ErrorCode::kUnavailable},
    {grpc::StatusCode::UNIMPLEMENTED, ErrorCode::kUnimplemented},
    {grpc::StatusCode::INTERNAL, ErrorCode::kInternal}};

template <typename Value>
void Copy(const std::vector<Value>& values, RepeatedField<Value>* field) {
  field->Assign(values.begin(), values.end());
}

template <typename Value>
std::vector<Value> Copy(const RepeatedField<Value>& field) {
  return {field.begin(), field.end()};
}

void ToMessage(const Problem::Trees& trees, v1::Trees* message) {
  Copy(trees.dofs, message->mutable_dofs());
  Copy(trees.dynamics_matrix, message->mutable_dynamics_matrix());
  Copy(trees.free_motion_velocity, message->mutable_free_motion_velocity());
  Copy(trees.guess_velocity, message->mutable_guess_velocity());
  Copy(trees.tree_id, message->mutable_tree_id());
  Copy(trees.initial_velocity, message->mutable_initial_velocity());
}

void ToMessage(const Problem::RigidBodies& bodies, v1::RigidBodies* message) {
  Copy(bodies.mass, message->mutable_mass());
  Copy(bodies.inertia, message->mutable_inertia());
  Copy(bodies.center_of_mass, message->mutable_center_of_mass());
  Copy(bodies.free_motion_velocity, message->mutable_free_motion_velocity());
  Copy(bodies.guess_velocity, message->mutable_guess_velocity());
  Copy(bodies.body_id, message->mutable_body_id());
  Copy(bodies.initial_velocity, message->mutable_initial_velocity());
}

// Arrays that contacts and body contacts have in common.
template <typename Message>
void ToMessage(const Problem::Law& law, Message* message) {
  Copy(law.signed_distance, message->mutable_signed_distance());
  Copy(law.stiffness, message->mutable_stiffness());
  Copy(law.relaxation_time, message->mutable_relaxation_time());
  Copy(law.friction, message->mutable_friction());
  Copy(law.regularization_t, message->mutable_regularization_t());
  Copy(law.regularization_n, message->mutable_regularization_n());
  Copy(law.delassus_estimate, message->mutable_delassus_estimate());
  Copy(law.surface_velocity, message->mutable_surface_velocity());
  Copy(law.friction_2, message->mutable_friction_2());
  Copy(law.torsional_friction, message->mutable_torsional_friction());
  Copy(law.rolling_friction, message->mutable_rolling_friction());
  Copy(law.target_velocity, message->mutable_target_velocity());
  Copy(law.target_angular_velocity, message->mutable_target_angular_velocity());
  Copy(law.adhesion, message->mutable_adhesion());
  Copy(law.law, message->mutable_law());
  v1::HuntCrossley* hunt_crossley = message->mutable_hunt_crossley();
  Copy(law.hunt_crossley.elastic_force, hunt_crossley->mutable_elastic_force());
  Copy(law.hunt_crossley.dissipation, hunt_crossley->mutable_dissipation());
  Copy(law.hunt_crossley.lagged_normal_impulse, hunt_crossley->mutable_lagged_normal_impulse());
}

template <typename Message>
Problem::Law LawFrom(const Message& message) {
  return {.signed_distance = Copy(message.signed_distance()),
          .stiffness = Copy(message.stiffness()),
          .relaxation_time = Copy(message.relaxation_time()),
          .friction = Copy(message.friction()),
          .regularization_t = Copy(message.regularization_t()),
          .regularization_n = Copy(message.regularization_n()),
          .delassus_estimate = Copy(message.delassus_estimate()),
          .surface_velocity = Copy(message.surface_velocity()),
          .friction_2 = Copy(message.friction_2()),
          .torsional_friction = Copy(message.torsional_friction()),
          .rolling_friction = Copy(message.rolling_friction()),
          .target_velocity = Copy(message.target_velocity()),
          .target_angular_velocity = Copy(message.target_angular_velocity()),
          .adhesion = Copy(message.adhesion()),
          .law = Copy(message.law()),
          .hunt_crossley = {
              .elastic_force = Copy(message.hunt_crossley().elastic_force()),
              .dissipation = Copy(message.hunt_crossley().dissipation()),
              .lagged_normal_impulse = Copy(message.hunt_crossley().lagged_normal_impulse())}};
}

void ToMessage(const Problem::Rows& rows, v1::ConstraintRows* message) {
  Copy(rows.entries, message->mutable_entries());
  Copy(rows.velocity_index, message->mutable_velocity_index());
  Copy(rows.coefficient, message->mutable_coefficient());
  Copy(rows.position_error, message->mutable_position_error());
  Copy(rows.velocity_offset, message->mutable_velocity_offset());
  Copy(rows.stiffness, message->mutable_stiffness());
  Copy(rows.relaxation_time, message->mutable_relaxation_time());
  Copy(rows.force_lower, message->mutable_force_lower());
  Copy(rows.force_upper, message->mutable_force_upper());
  Copy(rows.regularization, message->mutable_regularization());
  Copy(rows.target_velocity, message->mutable_target_velocity());
  Copy(rows.delassus_estimate, message->mutable_delassus_estimate());
  Copy(rows.slip_parameter, message->mutable_slip_parameter());
  Copy(rows.force_offset, message->mutable_force_offset());
}

Problem::Rows RowsFrom(const v1::ConstraintRows& message) {
  return {.entries = Copy(message.entries()),
          .velocity_index = Copy(message.velocity_index()),
          .coefficient = Copy(message.coefficient()),
          .position_error = Copy(message.position_error()),
          .velocity_offset = Copy(message.velocity_offset()),
          .stiffness = Copy(message.stiffness()),
          .relaxation_time = Copy(message.relaxation_time()),
          .force_lower = Copy(message.force_lower()),
          .force_upper = Copy(message.force_upper()),
          .regularization = Copy(message.regularization()),
          .target_velocity = Copy(message.target_velocity()),
          .delassus_estimate = Copy(message.delassus_estimate()),
          .slip_parameter = Copy(message.slip_parameter()),
          .force_offset = Copy(message.force_offset())};
}

v1::RegularizationRule ToMessage(DelassusRule rule) {
  switch (rule) {
    case DelassusRule::kFull:
      return v1::REGULARIZATION_RULE_FULL;
    case DelassusRule::kDiagonal:
      return v1::REGULARIZATION_RULE_DIAGONAL;
    case DelassusRule::kLoadPath:
      return v1::REGULARIZATION_RULE_LOAD_PATH;
  }
  return v1::REGULARIZATION_RULE_UNSPECIFIED;
}

void ToMessage(const ContactProblemView::Regularization& regularization,
               v1::Regularization* message) {
  message->set_beta(regularization.beta);
  message->set_sigma(regularization.sigma);
  message->set_rule(ToMessage(regularization.rule));
  message->set_row_beta(regularization.row_beta);
  message->set_stiction_speed(regularization.stiction_speed);
  // Absent is infinite.
  if (regularization.load_reference_speed == std::numeric_limits<double>::infinity()) {
    message->clear_load_reference_speed();
  } else {
    message->set_load_reference_speed(regularization.load_reference_speed);
  }
}

// The rule must be known.
ContactProblemView::Regularization RegularizationFrom(const v1::Regularization& message) {
  ContactProblemView::Regularization regularization;
  if (message.has_beta()) regularization.beta = message.beta();
  if (message.has_sigma()) regularization.sigma = message.sigma();
  if (message.rule() == v1::REGULARIZATION_RULE_DIAGONAL) {
    regularization.rule = DelassusRule::kDiagonal;
  } else if (message.rule() == v1::REGULARIZATION_RULE_LOAD_PATH) {
    regularization.rule = DelassusRule::kLoadPath;
  }
  if (message.has_row_beta()) regularization.row_beta = message.row_beta();
  if (message.has_stiction_speed()) regularization.stiction_speed = message.stiction_speed();
  if (message.has_load_reference_speed()) {
    regularization.load_reference_speed = message.load_reference_speed();
  }
  return regularization;
}

v1::IslandStatus EncodeStatus(SolveStatus status) {
  // The enum of the wire starts at 1, since 0 is UNSPECIFIED.
  return static_cast<v1::IslandStatus>(static_cast<int>(status) + 1);
}

static_assert(static_cast<int>(SolveStatus::kConverged) + 1 == v1::ISLAND_STATUS_CONVERGED);
static_assert(static_cast<int>(SolveStatus::kStalledAtRoundoff) + 1 ==
              v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF);
static_assert(static_cast<int>(SolveStatus::kIterationLimit) + 1 ==
              v1::ISLAND_STATUS_ITERATION_LIMIT);
static_assert(static_cast<int>(SolveStatus::kDeadline) + 1 == v1::ISLAND_STATUS_DEADLINE);
static_assert(static_cast<int>(SolveStatus::kCancelled) + 1 == v1::ISLAND_STATUS_CANCELLED);
static_assert(static_cast<int>(SolveStatus::kNumericalFailure) + 1 ==
              v1::ISLAND_STATUS_NUMERICAL_FAILURE);

tl::unexpected<Error> Malformed(const std::string& what) {
  return tl::unexpected(Error{ErrorCode::kInternal, "the response of the server has " + what, ""});
}

tl::expected<std::vector<Island>, Error> IslandsFrom(const v1::IslandReports& message) {
  const int count = message.status_size();
  for (const int size :
       {message.iterations_size(), message.factorizations_size(), message.momentum_residual_size(),
        message.optimality_gap_bound_size(), message.dofs_size(), message.contacts_size(),
        message.solve_time_s_size()}) {
    if (size != count) return Malformed("island arrays of different lengths");
  }
  // Servers before these fields do not send them.
  for (const int size : {message.rows_size(), message.cost_size()}) {
    if (size != 0 && size != count) return Malformed("island arrays of different lengths");
  }
  std::vector<Island> islands(count);
  for (int i = 0; i < count; ++i) {
    const int status = message.status(i);
    if (status < v1::ISLAND_STATUS_CONVERGED || status > v1::ISLAND_STATUS_NUMERICAL_FAILURE) {
      return Malformed("an island status that this version does not know");
    }
    islands[i] = {.status = static_cast<SolveStatus>(status - 1),
                  .iterations = static_cast<int>(message.iterations(i)),
                  .factorizations = static_cast<int>(message.factorizations(i)),
                  .momentum_residual = message.momentum_residual(i),
                  .optimality_gap_bound = message.optimality_gap_bound(i),
                  .cost = message.cost().empty() ? 0 : message.cost(i),
                  .dofs = static_cast<int>(message.dofs(i)),
                  .contacts = static_cast<int>(message.contacts(i)),
                  .rows = message.rows().empty() ? 0 : static_cast<int>(message.rows(i)),
                  .solve_time_s = message.solve_time_s(i)};
  }
  for (const uint32_t i : message.swept()) {
    if (i >= islands.size()) return Malformed("an island that is not there");
    islands[i].swept = true;
  }
  return islands;
}

static_assert(static_cast<int>(AdjointStatus::kDifferentiated) + 1 ==
              v1::ADJOINT_STATUS_DIFFERENTIATED);
static_assert(static_cast<int>(AdjointStatus::kInaccurate) + 1 == v1::ADJOINT_STATUS_INACCURATE);
static_assert(static_cast<int>(AdjointStatus::kDeadline) + 1 == v1::ADJOINT_STATUS_DEADLINE);
static_assert(static_cast<int>(AdjointStatus::kNumericalFailure) + 1 ==
              v1::ADJOINT_STATUS_NUMERICAL_FAILURE);

// In a derivative a number that is absent is 0.
tl::expected<ProblemDerivative, Error> DerivativeFrom(const v1::ContactProblem& message) {
  auto problem = FromMessage(message);
  if (!problem) return tl::unexpected(problem.error());
  ProblemDerivative derivative;
  static_cast<Problem&>(derivative) = std::move(*problem);
  const v1::Regularization& regularization = message.regularization();
  derivative.regularization = {.beta = regularization.beta(),
                               .sigma = regularization.sigma(),
                               .row_beta = regularization.row_beta(),
                               .stiction_speed = regularization.stiction_speed(),
                               .load_reference_speed = regularization.load_reference_speed()};
  return derivative;
}

Error ErrorFrom(const v1::Failure& failure) {
  return {FromCode(failure.code()), failure.message(), failure.field(), failure.reason(),
          FromMessage(failure.retry_delay())};
}

v1::NewtonMethod ToMessage(NewtonMethod method) {
  switch (method) {
    case NewtonMethod::kPlain:
      return v1::NEWTON_METHOD_PLAIN;
    case NewtonMethod::kAccelerated:
      return v1::NEWTON_METHOD_ACCELERATED;
    case NewtonMethod::kGaussSeidel:
      return v1::NEWTON_METHOD_GAUSS_SEIDEL;
  }
  return v1::NEWTON_METHOD_UNSPECIFIED;
}

}  // namespace

void ToMessage(const Problem& problem, v1::ContactProblem* message) {
  message->set_time_step(problem.time_step);
  ToMessage(problem.trees, message->mutable_trees());
  ToMessage(problem.bodies, message->mutable_bodies());
  v1::Contacts* contacts = message->mutable_contacts();
  Copy(problem.contacts.tree_a, contacts->mutable_tree_a());
  Copy(problem.contacts.tree_b, contacts->mutable_tree_b());
  Copy(problem.contacts.jacobian, contacts->mutable_jacobian());
  Copy(problem.contacts.angular_jacobian, contacts->mutable_angular_jacobian());
  ToMessage(problem.contacts.law, contacts);
  v1::BodyContacts* body_contacts = message->mutable_body_contacts();
  Copy(problem.body_contacts.body_a, body_contacts->mutable_body_a());
  Copy(problem.body_contacts.body_b, body_contacts->mutable_body_b());
  Copy(problem.body_contacts.point, body_contacts->mutable_point());
  Copy(problem.body_contacts.normal, body_contacts->mutable_normal());
  Copy(problem.body_contacts.tangent, body_contacts->mutable_tangent());
  ToMessage(problem.body_contacts.law, body_contacts);
  ToMessage(problem.rows, message->mutable_rows());
  ToMessage(problem.regularization, message->mutable_regularization());
}

void ToMessage(const SolveOptions& options, v1::SolveOptions* message) {
  message->set_relative_tolerance(options.solver.relative_tolerance);
  message->set_absolute_speed_tolerance(options.solver.absolute_speed_tolerance);
  message->set_max_iterations(static_cast<uint32_t>(options.solver.max_iterations));
  message->set_islands(options.solver.islands);
  message->set_newton(ToMessage(options.solver.newton));
  if (options.time_budget) ToMessage(*options.time_budget, message->mutable_time_budget());
  if (options.priority == Priority::kHigh) message->set_priority(v1::PRIORITY_HIGH);
  for (const std::string& path : options.response_mask) {
    message->mutable_response_mask()->add_paths(path);
  }
}

void ToMessage(const Solution& solution, v1::ContactSolution* message) {
  Copy(solution.velocity, message->mutable_velocity());
  Copy(solution.impulse, message->mutable_impulse());
  Copy(solution.contact_velocity, message->mutable_contact_velocity());
  Copy(solution.row_impulse, message->mutable_row_impulse());
  Copy(solution.row_velocity, message->mutable_row_velocity());
  Copy(solution.angular_impulse, message->mutable_angular_impulse());
  Copy(solution.delassus_estimate, message->mutable_delassus_estimate());
  message->set_cost(solution.cost);
  Copy(solution.island_of_tree, message->mutable_island_of_tree());
  v1::IslandReports* islands = message->mutable_islands();
  for (size_t i = 0; i < solution.islands.size(); ++i) {
    const Island& island = solution.islands[i];
    if (island.swept) islands->add_swept(static_cast<uint32_t>(i));
    islands->add_status(EncodeStatus(island.status));
    islands->add_iterations(island.iterations);
    islands->add_factorizations(island.factorizations);
    islands->add_momentum_residual(island.momentum_residual);
    islands->add_optimality_gap_bound(island.optimality_gap_bound);
    islands->add_dofs(island.dofs);
    islands->add_contacts(island.contacts);
    islands->add_solve_time_s(island.solve_time_s);
    islands->add_rows(island.rows);
    islands->add_cost(island.cost);
  }
  v1::PhaseTimings* timings = message->mutable_timings();
  timings->set_decode_s(solution.timings.decode_s);
  timings->set_queue_s(solution.timings.queue_s);
  timings->set_islands_s(solution.timings.islands_s);
  timings->set_solve_s(solution.timings.solve_s);
  timings->set_encode_s(solution.timings.encode_s);
}

void ToMessage(std::chrono::nanoseconds time, google::protobuf::Duration* message) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  message->set_seconds(seconds.count());
  message->set_nanos(static_cast<int32_t>((time - seconds).count()));
}

void ToMessage(const Cotangent& cotangent, v1::Cotangent* message) {
  Copy(cotangent.velocity, message->mutable_velocity());
  Copy(cotangent.impulse, message->mutable_impulse());
  Copy(cotangent.contact_velocity, message->mutable_contact_velocity());
  Copy(cotangent.row_impulse, message->mutable_row_impulse());
  Copy(cotangent.row_velocity, message->mutable_row_velocity());
  Copy(cotangent.angular_impulse, message->mutable_angular_impulse());
  message->set_cost(cotangent.cost);
}

void ToMessage(const Problem& problem, std::span<const Cotangent> cotangents,
               const DifferentiateOptions& options, v1::DifferentiateRequest* message) {
  ToMessage(problem, message->mutable_problem());
  ToMessage(options.solve, message->mutable_options());
  Copy(options.velocity, message->mutable_velocity());
  for (const Cotangent& cotangent : cotangents) ToMessage(cotangent, message->add_cotangents());
  for (const Problem& tangent : options.tangents) ToMessage(tangent, message->add_tangents());
  for (const std::string& path : options.wanted) message->mutable_wanted()->add_paths(path);
  message->set_hold_delassus(options.hold_delassus);
}

void ToMessage(const Error& error, v1::Failure* message) {
  message->set_code(ToCode(error.code));
  message->set_message(error.message);
  message->set_field(error.field);
}

tl::expected<Problem, Error> FromMessage(const v1::ContactProblem& message) {
  const auto rule = message.regularization().rule();
  if (!v1::RegularizationRule_IsValid(rule)) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "regularization.rule has a value unknown to this version",
                                "regularization.rule"});
  }
  Problem problem;
  problem.time_step = message.time_step();
  problem.trees = {.dofs = Copy(message.trees().dofs()),
                   .dynamics_matrix = Copy(message.trees().dynamics_matrix()),
                   .free_motion_velocity = Copy(message.trees().free_motion_velocity()),
                   .guess_velocity = Copy(message.trees().guess_velocity()),
                   .tree_id = Copy(message.trees().tree_id()),
                   .initial_velocity = Copy(message.trees().initial_velocity())};
  problem.bodies = {.mass = Copy(message.bodies().mass()),
                    .inertia = Copy(message.bodies().inertia()),
                    .center_of_mass = Copy(message.bodies().center_of_mass()),
                    .free_motion_velocity = Copy(message.bodies().free_motion_velocity()),
                    .guess_velocity = Copy(message.bodies().guess_velocity()),
                    .body_id = Copy(message.bodies().body_id()),
                    .initial_velocity = Copy(message.bodies().initial_velocity())};
  problem.contacts = {.tree_a = Copy(message.contacts().tree_a()),
                      .tree_b = Copy(message.contacts().tree_b()),
                      .jacobian = Copy(message.contacts().jacobian()),
                      .angular_jacobian = Copy(message.contacts().angular_jacobian()),
                      .law = LawFrom(message.contacts())};
  problem.body_contacts = {.body_a = Copy(message.body_contacts().body_a()),
                           .body_b = Copy(message.body_contacts().body_b()),
                           .point = Copy(message.body_contacts().point()),
                           .normal = Copy(message.body_contacts().normal()),
                           .tangent = Copy(message.body_contacts().tangent()),
                           .law = LawFrom(message.body_contacts())};
  problem.rows = RowsFrom(message.rows());
  problem.regularization = RegularizationFrom(message.regularization());
  return problem;
}

tl::expected<Solution, Error> FromMessage(const v1::ContactSolution& message) {
  auto islands = IslandsFrom(message.islands());
  if (!islands) return tl::unexpected(islands.error());
  Solution solution;
  solution.velocity = Copy(message.velocity());
  solution.impulse = Copy(message.impulse());
  solution.contact_velocity = Copy(message.contact_velocity());
  solution.row_impulse = Copy(message.row_impulse());
  solution.row_velocity = Copy(message.row_velocity());
  solution.angular_impulse = Copy(message.angular_impulse());
  solution.delassus_estimate = Copy(message.delassus_estimate());
  solution.cost = message.cost();
  solution.island_of_tree = Copy(message.island_of_tree());
  solution.islands = std::move(*islands);
  solution.timings = {.decode_s = message.timings().decode_s(),
                      .queue_s = message.timings().queue_s(),
                      .islands_s = message.timings().islands_s(),
                      .solve_s = message.timings().solve_s(),
                      .encode_s = message.timings().encode_s()};
  return solution;
}

ServerInfo FromMessage(const v1::GetServerInfoResponse& message) {
  return {.version = message.version(),
          .instruction_set = message.instruction_set(),
          .boot_id = message.boot_id(),
          .processors = message.processors(),
          .solver_threads = message.solver_threads(),
          .max_message_bytes = message.limits().max_message_bytes(),
          .max_trees = message.limits().max_trees(),
          .max_tree_dofs = message.limits().max_tree_dofs(),
          .max_contacts = message.limits().max_contacts(),
          .max_rows = message.limits().max_rows(),
          .max_row_entries = message.limits().max_row_entries(),
          .max_row_pairs = message.limits().max_row_pairs(),
          .max_iterations = message.limits().max_iterations(),
          .max_concurrent_calls = message.limits().max_concurrent_calls(),
          .max_batch_problems = message.limits().max_batch_problems(),
          .max_sessions = message.limits().max_sessions(),
          .max_client_sessions = message.limits().max_client_sessions(),
          .max_steps_in_flight = message.limits().max_steps_in_flight(),
          .max_solve_memory_bytes = message.limits().max_solve_memory_bytes(),
          .max_solve_s = message.limits().max_solve_s(),
          .max_client_calls_per_s = message.limits().max_client_calls_per_s(),
          .high_priority = message.limits().high_priority(),
          .max_derivatives = message.limits().max_derivatives()};
}

std::chrono::nanoseconds FromMessage(const google::protobuf::Duration& message) {
  return std::chrono::seconds(message.seconds()) + std::chrono::nanoseconds(message.nanos());
}

tl::expected<Derivatives, Error> FromMessage(const v1::DifferentiateResponse& message) {
  auto solution = FromMessage(message.solution());
  if (!solution) return tl::unexpected(solution.error());
  Derivatives derivatives;
  derivatives.solution = std::move(*solution);
  for (const v1::Gradient& gradient : message.gradients()) {
    auto problem = DerivativeFrom(gradient.gradient());
    if (!problem) return tl::unexpected(problem.error());
    derivatives.gradients.push_back({std::move(*problem), Copy(gradient.applied_impulse()),
                                     Copy(gradient.delassus_estimate())});
  }
  for (const v1::Tangent& tangent : message.tangents()) {
    derivatives.tangents.push_back({.velocity = Copy(tangent.velocity()),
                                    .impulse = Copy(tangent.impulse()),
                                    .contact_velocity = Copy(tangent.contact_velocity()),
                                    .row_impulse = Copy(tangent.row_impulse()),
                                    .row_velocity = Copy(tangent.row_velocity()),
                                    .angular_impulse = Copy(tangent.angular_impulse()),
                                    .cost = tangent.cost()});
  }
  derivatives.kink_margin = Copy(message.kink_margin());
  for (const int status : message.adjoint_status()) {
    if (status < v1::ADJOINT_STATUS_DIFFERENTIATED ||
        status > v1::ADJOINT_STATUS_NUMERICAL_FAILURE) {
      return Malformed("an adjoint status that this version does not know");
    }
    derivatives.adjoint_status.push_back(static_cast<AdjointStatus>(status - 1));
  }
  return derivatives;
}

tl::expected<Solution, Error> FromMessage(const v1::Outcome& message) {
  switch (message.outcome_case()) {
    case v1::Outcome::kSolution:
      return FromMessage(message.solution());
    case v1::Outcome::kFailure:
      return tl::unexpected(ErrorFrom(message.failure()));
    case v1::Outcome::OUTCOME_NOT_SET:
      break;
  }
  return Malformed("neither solution nor failure");
}

tl::expected<Derivatives, Error> FromMessage(const v1::DifferentiateOutcome& message) {
  switch (message.outcome_case()) {
    case v1::DifferentiateOutcome::kDerivatives:
      return FromMessage(message.derivatives());
    case v1::DifferentiateOutcome::kFailure:
      return tl::unexpected(ErrorFrom(message.failure()));
    case v1::DifferentiateOutcome::OUTCOME_NOT_SET:
      break;
  }
  return Malformed("neither derivatives nor failure");
}

ErrorCode FromCode(int code) {
  for (const auto& [number, error] : kCodes) {
    if (number == code) return error;
  }
  return ErrorCode::kInternal;
}

int ToCode(ErrorCode code) {
  for (const auto& [number, error] : kCodes) {
    if (error == code) return number;
  }
  return grpc::StatusCode::INTERNAL;
}

}  // namespace sap::client
