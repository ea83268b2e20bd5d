#include "solver/problem/input_differential.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "solver/problem/body_contact_differential.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/input_arrays.h"

namespace sap {

namespace {

// The derivative of reading a problem is a sparse matrix. The functions called Link... below name
// each of its entries c once: link(c, inputs, i, number) for that of inputs[i] and a number of the
// problem. Forward and Reverse are the product with it and with its transpose. An empty array has
// no entries.
struct Forward {
  void operator()(double c, double input, double& number) const { number += c * input; }
  void operator()(double c, std::span<const double> inputs, int64_t i, double& number) const {
    if (!inputs.empty()) number += c * inputs[i];
  }
};

// An entry that left the range of double precision, as v_hat may, made its island fail, so that all
// numbers of the island have the derivative 0.
struct Reverse {
  void operator()(double c, double& input, double number) const {
    if (number != 0) input += c * number;
  }
  void operator()(double c, std::vector<double>& inputs, int64_t i, double number) const {
    if (!inputs.empty() && number != 0) inputs[i] += c * number;
  }
};

template <typename Link, typename Inputs, typename Numbers>
void LinkAll(const Link& link, Inputs& inputs, Numbers& numbers) {
  const int64_t n = static_cast<int64_t>(inputs.size());
  for (int64_t i = 0; i < n; ++i) link(1, inputs, i, numbers[i]);
}

template <typename Link, typename Arrays, typename Numbers>
void LinkScalars(const Link& link, Arrays& arrays, Numbers& numbers) {
  link(1, arrays.time_step, numbers.time_step);
  link(1, arrays.regularization.beta, numbers.beta);
  link(1, arrays.regularization.sigma, numbers.sigma);
  link(1, arrays.regularization.row_beta, numbers.row_beta);
  link(1, arrays.regularization.stiction_speed, numbers.stiction_speed);
  link(1, arrays.regularization.reference_time_step, numbers.reference_time_step);
}

template <typename Link, typename Arrays, typename Numbers>
void LinkTrees(const Link& link, const ContactProblem& problem, int num_trees, Arrays& arrays,
               Numbers& numbers) {
  LinkAll(link, arrays.trees.free_motion_velocity, numbers.v_star);
  LinkAll(link, arrays.trees.coupling_block, numbers.coupling_block);
  if (arrays.trees.dynamics_matrix.empty()) return;
  for (int tree = 0; tree < num_trees; ++tree) {
    const int n = problem.dofs()[tree];
    const int64_t start = problem.matrix_start()[tree];
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        const int64_t ij = start + i * n + j;
        link(0.5, arrays.trees.dynamics_matrix, ij, numbers.dynamics_matrix[ij]);
        link(0.5, arrays.trees.dynamics_matrix, ij, numbers.dynamics_matrix[start + j * n + i]);
      }
    }
  }
}

template <typename Link, typename Bodies, typename Numbers>
void LinkBodies(const Link& link, const ContactProblem& problem, int num_trees, int num_bodies,
                Bodies& bodies, Numbers& numbers) {
  // Places in the matrix of xx yy zz xy xz yz.
  constexpr std::array<std::pair<int, int>, 6> kInertia{
      {{3, 3}, {4, 4}, {5, 5}, {3, 4}, {3, 5}, {4, 5}}};
  for (int body = 0; body < num_bodies; ++body) {
    auto* A = numbers.dynamics_matrix.data() + problem.matrix_start()[num_trees + body];
    for (int i = 0; i < 3; ++i) link(1, bodies.mass, body, A[7 * i]);
    for (int k = 0; k < 6; ++k) {
      const auto [i, j] = kInertia[k];
      link(1, bodies.inertia, 6 * body + k, A[6 * i + j]);
      if (i != j) link(1, bodies.inertia, 6 * body + k, A[6 * j + i]);
    }
    auto* v_star = numbers.v_star.data() + problem.velocity_start()[num_trees + body];
    for (int i = 0; i < 6; ++i) link(1, bodies.free_motion_velocity, 6 * body + i, v_star[i]);
  }
}

// A range of contacts that one message holds.
struct LawRange {
  const ContactProblemView::Law& inputs;
  int first_contact;
  int count;
};

// v_hat = -phi0 / (dt + tau_d) along the normal, where no target is given.
template <typename Link, typename Arrays, typename Law, typename Numbers>
void LinkApproach(const Link& link, const ContactProblem& problem, int64_t i, int contact,
                  Arrays& arrays, Law& law, Numbers& numbers) {
  const double inv_time = 1 / (problem.time_step() + problem.tau_d()[contact]);
  const int64_t normal = 3 * static_cast<int64_t>(contact) + 2;
  auto& v_hat = numbers.v_hat[normal];
  const double by_time = -problem.v_hat()[normal] * inv_time;
  link(-inv_time, law.signed_distance, i, v_hat);
  link(by_time, law.relaxation_time, i, v_hat);
  link(by_time, arrays.time_step, v_hat);
}

template <typename Link, typename Law, typename Numbers>
void LinkFriction(const Link& link, const LawRange& range, int64_t i, int contact, Law& law,
                  Numbers& numbers) {
  link(1, law.friction, i, numbers.mu[contact]);
  auto& second = range.inputs.friction_2.empty() ? law.friction : law.friction_2;
  link(1, second, i, numbers.mu_2[contact]);
  link(1, law.adhesion, i, numbers.adhesion[contact]);
}

// The numbers of one contact that only contacts of its kind have.
template <typename Link, typename Law, typename Numbers>
void LinkExtra(const Link& link, const ContactProblem& problem, int64_t i, int contact, Law& law,
               Numbers& numbers) {
  const ConstraintKind kind = problem.contact_kind()[contact];
  const int extra = problem.contact_extra()[contact];
  if (IsHuntCrossley(kind)) {
    auto& parameters = numbers.hunt_crossley[extra];
    link(1, law.hunt_crossley.elastic_force, i, parameters.elastic_force);
    link(1, law.hunt_crossley.dissipation, i, parameters.dissipation);
    link(1, law.hunt_crossley.lagged_normal_impulse, i, parameters.lagged_normal_impulse);
  } else if (HasAngularRows(kind)) {
    auto& angular = numbers.angular_friction[problem.general_friction()[extra].angular_contact];
    link(1, law.rolling_friction, 2 * i, angular[0]);
    link(1, law.rolling_friction, 2 * i + 1, angular[1]);
    link(1, law.torsional_friction, i, angular[2]);
  }
}

// All of a law but velocities, which the two messages have in axes of their own.
template <typename Link, typename Arrays, typename Law, typename Numbers>
void LinkLaw(const Link& link, const ContactProblem& problem, const LawRange& range, Arrays& arrays,
             Law& law, Numbers& numbers) {
  const bool reads_stiffness = range.inputs.regularization_n.empty();
  const bool reads_distance = range.inputs.target_velocity.empty();
  for (int64_t i = 0; i < range.count; ++i) {
    const int contact = range.first_contact + static_cast<int>(i);
    const bool hunt_crossley = IsHuntCrossley(problem.contact_kind()[contact]);
    if (reads_distance && !hunt_crossley) {
      LinkApproach(link, problem, i, contact, arrays, law, numbers);
    }
    if (reads_stiffness || hunt_crossley) link(1, law.stiffness, i, numbers.stiffness[contact]);
    link(1, law.relaxation_time, i, numbers.tau_d[contact]);
    LinkFriction(link, range, i, contact, law, numbers);
    link(1, law.regularization_t, i, numbers.R_t[contact]);
    link(1, law.regularization_n, i, numbers.R_n[contact]);
    link(1, law.delassus_estimate, i, numbers.w[contact]);
    LinkExtra(link, problem, i, contact, law, numbers);
  }
}

// Jacobians and velocities of contacts by Jacobian.
template <typename Link, typename Contacts, typename Numbers>
void LinkContacts(const Link& link, const ContactProblem& problem, const LawRange& range,
                  Contacts& contacts, Numbers& numbers) {
  LinkAll(link, contacts.jacobian, numbers.jacobian);
  LinkAll(link, contacts.angular_jacobian, numbers.angular_jacobian);
  LinkAll(link, contacts.law.surface_velocity, numbers.surface_velocity);
  LinkAll(link, contacts.law.target_angular_velocity, numbers.angular_v_hat);
  for (int64_t i = 0; i < range.count; ++i) {
    if (IsHuntCrossley(problem.contact_kind()[i])) continue;
    for (int64_t k = 3 * i; k < 3 * i + 3; ++k) {
      link(1, contacts.law.target_velocity, k, numbers.v_hat[k]);
    }
  }
}

template <typename Link, typename Arrays, typename Numbers>
void LinkRows(const Link& link, const ContactProblemView& inputs, const ContactProblem& problem,
              Arrays& arrays, Numbers& numbers) {
  auto& rows = arrays.rows;
  LinkAll(link, rows.coefficient, numbers.row_coefficients);
  for (int64_t i = 0; i < problem.num_rows(); ++i) {
    auto& row = numbers.rows[i];
    const RowParameters& read = problem.rows()[i];
    if (inputs.rows.target_velocity.empty()) {
      const double inv_time = 1 / (problem.time_step() + read.relaxation_time);
      link(-inv_time, rows.position_error, i, row.v_hat);
      link(-read.v_hat * inv_time, rows.relaxation_time, i, row.v_hat);
      link(-read.v_hat * inv_time, arrays.time_step, row.v_hat);
    }
    link(1, rows.target_velocity, i, row.v_hat);
    link(1, rows.velocity_offset, i, row.offset);
    link(1, rows.stiffness, i, row.stiffness);
    link(1, rows.relaxation_time, i, row.relaxation_time);
    link(1, rows.force_lower, i, row.force_lower);
    link(1, rows.force_upper, i, row.force_upper);
    link(1, rows.force_offset, i, row.force_offset);
    link(1, rows.regularization, i, row.given_R);
    link(1, rows.delassus_estimate, i, row.given_w);
    link(1, rows.slip_parameter, i, row.slip_parameter);
  }
}

// The whole matrix but frames and Jacobians of body contacts.
template <typename Link, typename Arrays, typename Numbers>
void LinkInputs(const Link& link, const ContactProblemView& inputs, const ContactProblem& problem,
                Arrays& arrays, Numbers& numbers) {
  const int num_trees = static_cast<int>(inputs.trees.dofs.size());
  const int num_bodies = static_cast<int>(inputs.bodies.mass.size());
  const int num_contacts = static_cast<int>(CountContacts(inputs.contacts));
  const int num_body_contacts = static_cast<int>(inputs.body_contacts.body_a.size());
  LinkScalars(link, arrays, numbers);
  LinkTrees(link, problem, num_trees, arrays, numbers);
  LinkBodies(link, problem, num_trees, num_bodies, arrays.bodies, numbers);
  const LawRange contacts{inputs.contacts.law, 0, num_contacts};
  LinkLaw(link, problem, contacts, arrays, arrays.contacts.law, numbers);
  LinkContacts(link, problem, contacts, arrays.contacts, numbers);
  LinkLaw(link, problem, {inputs.body_contacts.law, num_contacts, num_body_contacts}, arrays,
          arrays.body_contacts.law, numbers);
  LinkRows(link, inputs, problem, arrays, numbers);
}

void CheckScalars(const ContactProblemView& problem, const ContactProblemView& direction,
                  InputChecker* check) {
  ForEachNumberInput(
      [check](const FieldName& field, double value) { check->Value(field, value, Range::kFinite); },
      direction);
  const double change = direction.regularization.reference_time_step;
  if (check->ok() && change != 0 && problem.regularization.reference_time_step == 0) {
    check->Refuse("regularization.reference_time_step", -1,
                  "is " + ToText(change) + "; it must be 0, as the problem does not have it");
  }
}

void SetZero(const ContactProblemView& inputs, InputDifferential* gradient) {
  const InputSizes sizes = SizesOfInputs(inputs);
  ForEachInput(
      [](const FieldName&, std::vector<double>& values, int64_t size) { values.assign(size, 0.0); },
      *gradient, sizes);
  gradient->time_step = 0;
  gradient->regularization = {0, 0, DelassusRule::kFull, 0, 0, 0, 0};
}

bool IsFinite(const InputDifferential& gradient) {
  bool is_finite = true;
  ForEachNumberInput([&](const FieldName&, double x) { is_finite &= std::isfinite(x); }, gradient);
  ForEachInput(
      [&](const FieldName&, const std::vector<double>& values) {
        for (const double x : values) is_finite &= std::isfinite(x);
      },
      gradient);
  return is_finite;
}

}  // namespace

tl::expected<void, ProblemError> CheckDirection(const ContactProblemView& problem,
                                                const ContactProblemView& direction) {
  InputChecker check;
  CheckScalars(problem, direction, &check);
  const InputSizes sizes = SizesOfInputs(problem);
  ForEachInput(
      [&check](const FieldName& field, std::span<const double> values, int64_t size) {
        if (!check.ok() || values.empty()) return;
        if (static_cast<int64_t>(values.size()) != size) {
          const std::string needed =
              size > 0 ? std::to_string(size) + " or none are needed, as the problem has them"
                       : "none are needed, as the problem does not have it";
          return check.Refuse(field, -1,
                              "has " + std::to_string(values.size()) + " values; " + needed);
        }
        check.Values(field, values, Range::kFinite);
      },
      direction, sizes);
  if (!check.ok()) return tl::unexpected(check.refusal());
  return {};
}

void FromInputs(const ContactProblemView& inputs, const ContactProblem& problem,
                const ContactProblemView& direction, ProblemDifferential* change) {
  change->Reset(problem);
  LinkInputs(Forward(), inputs, problem, direction, *change);
  FromBodyContacts(inputs, problem, direction, change);
}

void ToInputs(const ContactProblemView& inputs, const ContactProblem& problem,
              const ProblemDifferential& derivative, InputDifferential* gradient) {
  SetZero(inputs, gradient);
  LinkInputs(Reverse(), inputs, problem, *gradient, derivative);
  ToBodyContacts(inputs, problem, derivative, gradient);
}

void GradientToInputs(const ContactProblemView& inputs, const ContactProblem& problem, size_t k,
                      Derivatives* derivatives, InputDifferential* gradient) {
  Gradient& of_problem = derivatives->gradients[k];
  ToInputs(inputs, problem, of_problem.problem, gradient);
  if (IsFinite(*gradient)) return;
  of_problem.problem.Reset(problem);
  std::ranges::fill(of_problem.applied_impulse, 0.0);
  std::ranges::fill(derivatives->adjoint_status, AdjointStatus::kNumericalFailure);
  SetZero(inputs, gradient);
}

}  // namespace sap
