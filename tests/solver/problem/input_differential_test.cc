// Derivatives between the arrays of a client and the numbers of the problem read from them.
#include "solver/problem/input_differential.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "solver/problem/input_arrays.h"
#include "tests/solver/problem/plain_problem.h"
#include "tests/support/input_moves.h"
#include "tests/support/random_constraints.h"
#include "tests/support/tree_parts.h"

namespace sap::test::input_differential {
namespace {

using Eigen::Vector3d;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A direction, or the inputs themselves.
using InputDifferential = InputDifferential;

// All numbers of a differential, in the order of NumbersOf.
std::vector<double*> PointersTo(ProblemDifferential* d) {
  std::vector<double*> all{&d->time_step, &d->beta,           &d->sigma,
                           &d->row_beta,  &d->stiction_speed, &d->reference_time_step};
  for (std::vector<double>* array :
       {&d->dynamics_matrix, &d->v_star, &d->jacobian, &d->v_hat, &d->surface_velocity, &d->tau_d,
        &d->mu, &d->mu_2, &d->stiffness, &d->R_t, &d->R_n, &d->w, &d->adhesion,
        &d->angular_jacobian, &d->angular_v_hat, &d->row_coefficients}) {
    for (double& number : *array) all.push_back(&number);
  }
  for (HuntCrossleyParameters& h : d->hunt_crossley) {
    all.insert(all.end(), {&h.elastic_force, &h.dissipation, &h.lagged_normal_impulse});
  }
  for (auto& angular : d->angular_friction) {
    for (double& mu : angular) all.push_back(&mu);
  }
  for (RowParameters& r : d->rows) {
    all.insert(all.end(),
               {&r.v_hat, &r.offset, &r.stiffness, &r.relaxation_time, &r.force_lower,
                &r.force_upper, &r.force_offset, &r.given_R, &r.given_w, &r.slip_parameter});
  }
  return all;
}

void AppendContacts(const ContactProblem& p, ProblemDifferential* to) {
  for (int i = 0; i < p.num_contacts(); ++i) {
    const int extra = p.contact_extra()[i];
    if (extra < 0) {
      to->mu_2[i] = p.mu()[i];
    } else if (IsHuntCrossley(p.contact_kind()[i])) {
      to->mu_2[i] = p.mu()[i];
      to->hunt_crossley[extra] = p.hunt_crossley()[extra];
    } else {
      const GeneralFriction& general = p.general_friction()[extra];
      to->mu_2[i] = general.mu_2;
      to->adhesion[i] = general.adhesion;
      if (general.angular_contact < 0) continue;
      to->angular_friction[general.angular_contact] = general.angular;
    }
  }
}

// The numbers of a problem.
std::vector<double> NumbersOf(const ContactProblem& p) {
  ProblemDifferential numbers;
  numbers.Reset(p);
  numbers.time_step = p.time_step();
  numbers.beta = p.regularization().beta;
  numbers.sigma = p.regularization().sigma;
  numbers.row_beta = p.regularization().row_beta;
  numbers.stiction_speed = p.regularization().stiction_speed;
  numbers.reference_time_step = p.regularization().reference_time_step;
  const auto copy = [](std::span<const double> from, std::vector<double>* to) {
    to->assign(from.begin(), from.end());
  };
  copy(p.dynamics_matrix(), &numbers.dynamics_matrix);
  copy(p.coupled_trees().blocks(), &numbers.coupling_block);
  copy(p.v_star(), &numbers.v_star);
  copy(p.jacobian(), &numbers.jacobian);
  copy(p.v_hat(), &numbers.v_hat);
  copy(p.surface_velocity(), &numbers.surface_velocity);
  copy(p.tau_d(), &numbers.tau_d);
  copy(p.mu(), &numbers.mu);
  copy(p.stiffness(), &numbers.stiffness);
  copy(p.given_R_t(), &numbers.R_t);
  copy(p.given_R_n(), &numbers.R_n);
  copy(p.given_w(), &numbers.w);
  copy(p.angular_jacobian(), &numbers.angular_jacobian);
  copy(p.angular_v_hat(), &numbers.angular_v_hat);
  copy(p.row_coefficients(), &numbers.row_coefficients);
  numbers.rows.assign(p.rows().begin(), p.rows().end());
  AppendContacts(p, &numbers);
  std::vector<double> values;
  for (const double* number : PointersTo(&numbers)) values.push_back(*number);
  return values;
}

// Full inertias, tangents, every law, targets and parameters, as the bits of the seed say.
ProblemArrays Bodies(uint64_t seed) {
  Random random(seed + 500);
  const int contacts = 12;
  ProblemArrays arrays = RandomBodiesInContact(seed, 5, contacts);
  ProblemArrays::RigidBodies& bodies = arrays.bodies;
  const bool plain = seed % 4 == 0;
  const auto fill = [&](size_t count, double low, double high, std::vector<double>* values) {
    for (size_t i = 0; i < count; ++i) values->push_back(Uniform(&random, low, high));
  };
  for (double& x : bodies.center_of_mass) x += Uniform(&random, -0.1, 0.1);
  if (plain) return arrays;
  LawArrays& law = arrays.body_contacts.law;
  fill(3 * contacts, -1, 1, &law.surface_velocity);
  if (seed % 2 == 1) fill(3 * contacts, -1, 1, &law.target_velocity);
  if (seed % 4 == 2) {
    fill(contacts, 1e-4, 1e-2, &law.regularization_t);
    fill(contacts, 1e-4, 1e-2, &law.regularization_n);
  }
  if (seed % 4 == 3) fill(contacts, 0.1, 2, &law.delassus_estimate);
  law.torsional_friction.assign(contacts, 0);
  law.rolling_friction.assign(2 * contacts, 0);
  law.adhesion.assign(contacts, 0);
  law.law.assign(contacts, 0);
  for (std::vector<double>* values :
       {&law.hunt_crossley.elastic_force, &law.hunt_crossley.dissipation,
        &law.hunt_crossley.lagged_normal_impulse}) {
    fill(contacts, 0.1, 1, values);
  }
  int num_angular = 0;
  for (int i = 0; i < contacts; ++i) {
    law.friction[i] = Uniform(&random, 0.1, 1);
    const int draw = i % 4;
    if (draw == 0) law.adhesion[i] = 3;
    if (draw == 1) law.law[i] = i % 8 == 1 ? 2 : 3;
    if (draw < 2) continue;
    law.torsional_friction[i] = Uniform(&random, 0.1, 0.3);
    if (draw == 3) law.rolling_friction[2 * i] = Uniform(&random, 0.1, 0.3);
    ++num_angular;
  }
  fill(3 * num_angular, -1, 1, &law.target_angular_velocity);
  if (seed % 3 == 0) return arrays;
  for (int i = 0; i < contacts; ++i) {
    const Vector3d n = Vector3d::Map(arrays.body_contacts.normal.data() + 3 * i);
    const Vector3d t = n.cross(RandomUnitVector(&random)).normalized() + 3e-7 * n;
    arrays.body_contacts.tangent.insert(arrays.body_contacts.tangent.end(), t.begin(), t.end());
  }
  return arrays;
}

// Contacts by Jacobian with parameters in place of every rule.
ProblemArrays TreesWithParameters() {
  ProblemArrays arrays = RandomTreesInContact(1, {.trees = 4, .contacts = 8, .max_dofs = 4});
  Random random(7);
  LawArrays& law = arrays.contacts.law;
  for (size_t i = 0; i < law.friction.size(); ++i) {
    law.regularization_t.push_back(Uniform(&random, 1e-4, 1e-2));
    law.regularization_n.push_back(Uniform(&random, 1e-4, 1e-2));
    law.delassus_estimate.push_back(Uniform(&random, 0.1, 2));
  }
  return arrays;
}

// Problems that have every input between them, and many by default.
std::vector<ProblemArrays> Problems() {
  std::vector<ProblemArrays> problems{
      PlainProblem(), TreesWithParameters(),
      InParts(RandomTreesInContact(2, {.trees = 3, .contacts = 4, .min_dofs = 4, .max_dofs = 7}),
              {3})};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    problems.push_back(RandomConstraintsOfEveryKind(
        seed, {.contacts = {.trees = 4, .contacts = 16, .max_dofs = 4}, .rows = 8}));
  }
  for (uint64_t seed = 0; seed < 8; ++seed) problems.push_back(Bodies(seed));
  return problems;
}

std::vector<double> Differences(const ProblemArrays& arrays, const std::string& name,
                                const std::vector<double>& direction, double h) {
  const std::vector<double> before = NumbersOf(Checked(Moved(arrays, name, direction, -h)));
  std::vector<double> differences = NumbersOf(Checked(Moved(arrays, name, direction, h)));
  for (size_t i = 0; i < before.size(); ++i) {
    const double after = differences[i];
    differences[i] = before[i] == after ? 0 : (after - before[i]) / (2 * h);
  }
  return differences;
}

// The rounding errors of the differences are about 2^-52 / h = 4e-10 of a number of size 1, their
// truncation error h^2 = 3e-13.
void ExpectMatchesDifferences(const ProblemArrays& arrays, const std::string& name,
                              const std::vector<double>& move) {
  constexpr double kStep = 5e-7;  // vectors may be off unit length by 1e-6
  const ContactProblem problem = Checked(arrays);
  InputDifferential direction = NoDirection();
  SetDirection(name, move, &direction);
  const auto checked = CheckDirection(arrays.View(), ViewOf(direction));
  ASSERT_TRUE(checked.has_value()) << checked.error().Message();
  ProblemDifferential change;
  FromInputs(arrays.View(), problem, ViewOf(direction), &change);
  const std::vector<double> expected = Differences(arrays, name, move, kStep);
  const std::vector<double> numbers = NumbersOf(problem);
  const std::vector<double*> actual = PointersTo(&change);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double size = std::isfinite(numbers[i]) ? std::abs(numbers[i]) : 0;
    EXPECT_NEAR(*actual[i], expected[i], 4e-9 * (1 + size)) << "number " << i;
  }
}

TEST(InputDifferentialTest, FromInputsMatchesDifferencesOfReadingForEveryInput) {
  Random random(1);
  std::set<std::string> moved;
  for (const ProblemArrays& arrays : Problems()) {
    for (const std::string& name : InputNames()) {
      SCOPED_TRACE(name);
      const std::vector<double> move = DrawMove(&random, arrays, name);
      if (std::all_of(move.begin(), move.end(), [](double x) { return x == 0; })) continue;
      moved.insert(name);
      ExpectMatchesDifferences(arrays, name, move);
    }
  }
  const std::vector<std::string> names = InputNames();
  std::set<std::string> all(names.begin(), names.end());
  all.erase("body_contacts.friction_2");  // as that of contacts, of which the reader is the same
  EXPECT_EQ(moved, all);
}

void Randomize(Random* random, std::vector<double>* values) {
  for (double& x : *values) x = Uniform(random, -1, 1);
}

InputDifferential RandomDirection(Random* random, const ContactProblemView& problem) {
  InputDifferential direction = NoDirection();
  const InputSizes sizes = SizesOfInputs(problem);
  ForEachInput(
      [&](const FieldName&, std::vector<double>& d, int64_t size) {
        d.resize(size);
        Randomize(random, &d);
      },
      direction, sizes);
  direction.time_step = Uniform(random, -1, 1);
  direction.regularization = {Uniform(random, -1, 1), Uniform(random, -1, 1), DelassusRule::kFull,
                              Uniform(random, -1, 1), Uniform(random, -1, 1)};
  if (problem.regularization.reference_time_step != 0) {
    direction.regularization.reference_time_step = Uniform(random, -1, 1);
  }
  return direction;
}

// A sum and the sum of the sizes of its terms.
struct Sum {
  void Add(double a, double b) {
    value += a * b;
    size += std::abs(a * b);
  }
  double value{0}, size{0};
};

Sum Product(const InputDifferential& a, const InputDifferential& b) {
  Sum sum;
  ForEachInput(
      [&](const FieldName& field, const std::vector<double>& x, const std::vector<double>& y) {
        ASSERT_EQ(x.size(), y.size()) << field.Text();
        for (size_t i = 0; i < x.size(); ++i) sum.Add(x[i], y[i]);
      },
      a, b);
  sum.Add(a.time_step, b.time_step);
  sum.Add(a.regularization.beta, b.regularization.beta);
  sum.Add(a.regularization.sigma, b.regularization.sigma);
  sum.Add(a.regularization.row_beta, b.regularization.row_beta);
  sum.Add(a.regularization.stiction_speed, b.regularization.stiction_speed);
  sum.Add(a.regularization.reference_time_step, b.regularization.reference_time_step);
  return sum;
}

TEST(InputDifferentialTest, ToInputsIsTheTransposeOfFromInputs) {
  Random random(2);
  for (const ProblemArrays& arrays : Problems()) {
    const ContactProblemView inputs = arrays.View();
    const ContactProblem problem = Checked(arrays);
    ProblemDifferential derivative, change;
    derivative.Reset(problem);
    const std::vector<double*> numbers = PointersTo(&derivative);
    for (double* number : numbers) *number = Uniform(&random, -1, 1);
    const InputDifferential direction = RandomDirection(&random, inputs);
    FromInputs(inputs, problem, ViewOf(direction), &change);
    InputDifferential gradient;
    ToInputs(inputs, problem, derivative, &gradient);
    const Sum by_inputs = Product(gradient, direction);
    Sum by_numbers;
    const std::vector<double*> changes = PointersTo(&change);
    for (size_t i = 0; i < numbers.size(); ++i) by_numbers.Add(*numbers[i], *changes[i]);
    EXPECT_NEAR(by_inputs.value, by_numbers.value, 1e-13 * (by_inputs.size + by_numbers.size));
  }
}

// dv_hat/dtau_d is -v_hat / (dt + tau_d).
TEST(InputDifferentialTest, AGradientThatOverflowsOnTheWayToTheInputsIsZeroAndFails) {
  ProblemArrays arrays = PlainProblem();
  arrays.body_contacts.law.signed_distance[1] = -1e10;
  const ContactProblem problem = Checked(arrays);
  const int contact = static_cast<int>(arrays.contacts.tree_a.size()) + 1;
  Derivatives derivatives;
  derivatives.adjoint_status.assign(2, AdjointStatus::kDifferentiated);
  derivatives.gradients.resize(2);
  for (Gradient& gradient : derivatives.gradients) {
    gradient.problem.Reset(problem);
    gradient.problem.mu[0] = 1;
    gradient.applied_impulse.assign(problem.num_velocities(), 1.0);
  }
  derivatives.gradients[1].problem.v_hat[3 * contact + 2] = 1e300;
  InputDifferential g;
  GradientToInputs(arrays.View(), problem, 0, &derivatives, &g);
  EXPECT_EQ(g.contacts.law.friction[0], 1);
  EXPECT_EQ(derivatives.adjoint_status[0], AdjointStatus::kDifferentiated);
  GradientToInputs(arrays.View(), problem, 1, &derivatives, &g);
  EXPECT_EQ(g.contacts.law.friction[0], 0);
  for (const double x : g.body_contacts.law.relaxation_time) EXPECT_EQ(x, 0);
  for (const double x : derivatives.gradients[1].applied_impulse) EXPECT_EQ(x, 0);
  for (const double x : derivatives.gradients[0].applied_impulse) EXPECT_EQ(x, 1);
  for (const AdjointStatus status : derivatives.adjoint_status) {
    EXPECT_EQ(status, AdjointStatus::kNumericalFailure);
  }
}

// phi0 / (dt + tau_d) overflows: the island of the contact fails, and no other.
TEST(InputDifferentialTest, AnInfiniteTargetLeavesTheDerivativesOfOthers) {
  ProblemArrays arrays = PlainProblem();
  arrays.body_contacts.law.signed_distance[1] = -1e308;
  arrays.time_step = 1e-3;
  const ContactProblem problem = Checked(arrays);
  Derivatives derivatives;
  derivatives.adjoint_status.assign(1, AdjointStatus::kDifferentiated);
  derivatives.gradients.resize(1);
  derivatives.gradients[0].problem.Reset(problem);
  derivatives.gradients[0].problem.mu[0] = 1;
  InputDifferential g;
  GradientToInputs(arrays.View(), problem, 0, &derivatives, &g);
  EXPECT_EQ(g.contacts.law.friction[0], 1);
  for (const double x : g.body_contacts.law.relaxation_time) EXPECT_EQ(x, 0);
  EXPECT_EQ(derivatives.adjoint_status[0], AdjointStatus::kDifferentiated);
}

TEST(InputDifferentialTest, ArraysThatARuleReplacesAndIndicesHaveNoDerivative) {
  const ProblemArrays arrays = PlainProblem();
  const ContactProblem problem = Checked(arrays);
  ProblemDifferential derivative;
  derivative.Reset(problem);
  InputDifferential g;
  ToInputs(arrays.View(), problem, derivative, &g);
  for (const auto* law : {&g.contacts.law, &g.body_contacts.law}) {
    const size_t n = law->friction.size();
    ASSERT_GT(n, 0u);
    EXPECT_EQ(law->surface_velocity.size(), 3 * n);
    EXPECT_EQ(law->adhesion.size(), n);
    EXPECT_EQ(law->torsional_friction.size(), n);
    EXPECT_EQ(law->rolling_friction.size(), 2 * n);
    for (const auto* absent :
         {&law->regularization_t, &law->regularization_n, &law->delassus_estimate, &law->friction_2,
          &law->target_velocity, &law->target_angular_velocity}) {
      EXPECT_TRUE(absent->empty());
    }
  }
  EXPECT_TRUE(g.body_contacts.tangent.empty());
  EXPECT_TRUE(g.trees.dofs.empty());
  EXPECT_TRUE(g.trees.guess_velocity.empty());
  EXPECT_TRUE(g.contacts.tree_a.empty());
}

TEST(InputDifferentialTest, ADerivativeAlongEachCoefficientIsOneAlongFrictionWhereItStandsForBoth) {
  for (const bool given : {false, true}) {
    ProblemArrays arrays = PlainProblem();
    if (given) arrays.contacts.law.friction_2 = arrays.contacts.law.friction;
    const ContactProblem problem = Checked(arrays);
    ProblemDifferential derivative;
    derivative.Reset(problem);
    derivative.mu[1] = 2;
    derivative.mu_2[1] = 3;
    InputDifferential g;
    ToInputs(arrays.View(), problem, derivative, &g);
    EXPECT_EQ(g.contacts.law.friction[1], given ? 2 : 5);
    EXPECT_EQ(g.contacts.law.friction_2,
              given ? std::vector<double>({0, 3, 0}) : std::vector<double>());
  }
}

TEST(InputDifferentialTest, DerivativesByNormalAndTangentAreOrthogonalToThem) {
  Random random(3);
  for (const uint64_t seed : {1, 2, 5, 7}) {
    const ProblemArrays arrays = Bodies(seed);
    const ContactProblem problem = Checked(arrays);
    ProblemDifferential derivative;
    derivative.Reset(problem);
    for (double* number : PointersTo(&derivative)) *number = Uniform(&random, -1, 1);
    InputDifferential g;
    ToInputs(arrays.View(), problem, derivative, &g);
    const auto& inputs = arrays.body_contacts;
    for (size_t i = 0; i < g.body_contacts.normal.size(); i += 3) {
      const Vector3d by_normal = Vector3d::Map(&g.body_contacts.normal[i]);
      EXPECT_NEAR(by_normal.dot(Vector3d::Map(&inputs.normal[i])), 0, 1e-14 * by_normal.norm());
      EXPECT_GT(by_normal.norm(), 0);
      if (inputs.tangent.empty()) continue;
      // Gradient by the tangent as it was given, 3e-7 off the orthogonal.
      const Vector3d by_tangent = Vector3d::Map(&g.body_contacts.tangent[i]);
      EXPECT_NEAR(by_tangent.dot(Vector3d::Map(&inputs.tangent[i])), 0, 1e-14 * by_tangent.norm());
      EXPECT_GT(by_tangent.norm(), 0);
    }
  }
}

// A direction of a problem, as the check takes it.
struct Direction {
  explicit Direction(const ProblemArrays& of) : problem(of) {}

  std::string Complaint() const {
    const auto checked = CheckDirection(problem.View(), ViewOf(values));
    return checked ? "" : checked.error().Message();
  }

  const ProblemArrays& problem;
  InputDifferential values = NoDirection();
};

TEST(CheckDirectionTest, TakesEmptyArraysAndThoseOfFullLength) {
  Random random(4);
  for (const ProblemArrays& arrays : Problems()) {
    Direction direction(arrays);
    EXPECT_EQ(direction.Complaint(), "");
    direction.values = RandomDirection(&random, arrays.View());
    EXPECT_EQ(direction.Complaint(), "");
  }
}

TEST(CheckDirectionTest, RefusesOtherLengthsByName) {
  const ProblemArrays arrays = PlainProblem();
  Direction direction(arrays);
  direction.values.body_contacts.law.friction = {1, 1, 1};
  EXPECT_EQ(direction.Complaint(),
            "body_contacts.friction has 3 values; 2 or none are needed, as the problem has them");
  direction.values.bodies.mass = {1};
  EXPECT_EQ(direction.Complaint(),
            "bodies.mass has 1 values; 2 or none are needed, as the problem has them");
}

TEST(CheckDirectionTest, RefusesWhatIsNotFiniteByNameAndIndex) {
  const ProblemArrays arrays = PlainProblem();
  Direction direction(arrays);
  direction.values.contacts.law.surface_velocity = std::vector<double>(9, 0.0);
  direction.values.contacts.law.surface_velocity[7] = kNaN;
  EXPECT_EQ(direction.Complaint(), "contacts.surface_velocity[7] is NaN; it must be finite");
  direction.values.time_step = kNaN;
  EXPECT_EQ(direction.Complaint(), "time_step is NaN; it must be finite");
}

TEST(CheckDirectionTest, RefusesDirectionsOfArraysThatARuleReplaces) {
  const ProblemArrays arrays = PlainProblem();
  Direction direction(arrays);
  direction.values.body_contacts.law.regularization_t = {1, 1};
  EXPECT_EQ(direction.Complaint(),
            "body_contacts.regularization_t has 2 values; none are needed, as the problem does not "
            "have it");
}

TEST(CheckDirectionTest, RefusesADirectionOfAnAbsentReferenceTimeStep) {
  ProblemArrays arrays = PlainProblem();
  Direction direction(arrays);
  direction.values.regularization.reference_time_step = 0.5;
  EXPECT_EQ(direction.Complaint(),
            "regularization.reference_time_step is 0.5; it must be 0, as the problem does not have "
            "it");
  arrays.regularization.reference_time_step = 0.01;
  EXPECT_EQ(direction.Complaint(), "");
}

}  // namespace
}  // namespace sap::test::input_differential
