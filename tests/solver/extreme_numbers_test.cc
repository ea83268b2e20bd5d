// Problems with numbers at the lower end of the doubles, whose squares are 0 and inverses infinite,
// against the same with zeros in their place.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>

#include "solver/solve.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr double kSmallest = 5e-324;
constexpr NewtonMethod kMethods[] = {NewtonMethod::kAccelerated, NewtonMethod::kPlain,
                                     NewtonMethod::kGaussSeidel};

enum class Friction { kPlain, kTorsional, kRolling, kLagged, kSimilar };
constexpr Friction kFrictions[] = {Friction::kPlain, Friction::kTorsional, Friction::kRolling,
                                   Friction::kLagged, Friction::kSimilar};

void SetFriction(Friction friction, LawArrays* law) {
  const size_t contacts = law->friction.size();
  switch (friction) {
    case Friction::kPlain:
      return;
    case Friction::kTorsional:
      law->torsional_friction.assign(contacts, 0.1);
      return;
    case Friction::kRolling:
      law->rolling_friction.assign(2 * contacts, 0.1);
      return;
    case Friction::kLagged:
    case Friction::kSimilar:
      law->law.assign(contacts, static_cast<int32_t>(friction == Friction::kLagged
                                                         ? ContactLaw::kHuntCrossleyLagged
                                                         : ContactLaw::kHuntCrossleySimilar));
      law->hunt_crossley.dissipation.assign(contacts, 0.1);
      law->hunt_crossley.lagged_normal_impulse.assign(contacts, 0.01);
      for (const double phi : law->signed_distance) {
        law->hunt_crossley.elastic_force.push_back(-law->stiffness[0] * phi);
      }
  }
}

// A tree of six dofs that lies on the floor and that a row drives, with v* in a direction that is
// not of the row.
ProblemArrays DrivenTree(Friction friction, double speed, double distance) {
  ProblemArrays arrays;
  Random random(1);
  Eigen::VectorXd v_star = speed * UniformVector(&random, 6, -1, 1);
  arrays.AddTree(RandomDynamicsMatrix(&random, 6, 0.3, 1), v_star);
  ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Zero(3, 6);
  J.leftCols(3).setIdentity();
  arrays.AddContact(0, J, {.signed_distance = distance});
  SetFriction(friction, &arrays.contacts.law);
  if (friction == Friction::kTorsional || friction == Friction::kRolling) {
    arrays.contacts.angular_jacobian.assign(18, 0);
    for (int i = 0; i < 3; ++i) arrays.contacts.angular_jacobian[7 * i + 3] = 1;
  }
  arrays.AddRow({0}, {1});
  arrays.rows.velocity_offset = {-0.2};
  return arrays;
}

// A body on four contacts with the world, an island that is solved in lanes.
ProblemArrays BodyOnFourContacts(Friction friction, double speed, double distance) {
  ProblemArrays arrays;
  Eigen::Matrix<double, 6, 1> v_star = Eigen::Matrix<double, 6, 1>::Constant(speed);
  arrays.AddBody(1, Vector3d::Constant(0.1), Vector3d::Zero(), v_star);
  int corner = 0;
  for (const double x : {-0.5, 0.5}) {
    for (const double y : {-0.5, 0.5}) {
      const double phi = corner++ % 2 == 0 ? distance : -distance;
      arrays.AddBodyContact(0, -1, {x, y, -0.5}, Vector3d::UnitZ(), {.signed_distance = phi});
    }
  }
  SetFriction(friction, &arrays.body_contacts.law);
  return arrays;
}

void ExpectSolvedAs(const ProblemArrays& arrays, const ProblemArrays& with_zeros) {
  for (const NewtonMethod method : kMethods) {
    SCOPED_TRACE(static_cast<int>(method));
    const SolverOptions options{
        .relative_tolerance = 1e-10, .max_iterations = 5000, .newton = method};
    const ContactSolution expected = Solve(Checked(with_zeros), options);
    const ContactSolution solution = Solve(Checked(arrays), options);
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kConverged);
    }
    for (size_t i = 0; i < expected.velocity.size(); ++i) {
      EXPECT_NEAR(solution.velocity[i], expected.velocity[i], 1e-9) << i;
    }
  }
}

TEST(ExtremeNumbersTest, SubnormalDistancesAreAsGoodAsNone) {
  for (const Friction friction : kFrictions) {
    SCOPED_TRACE(static_cast<int>(friction));
    for (const double distance : {-1e-300, -1e-308, -1e-310, -1e-314, -kSmallest, 1e-310}) {
      SCOPED_TRACE(distance);
      ExpectSolvedAs(DrivenTree(friction, 0, distance), DrivenTree(friction, 0, 0));
      ExpectSolvedAs(BodyOnFourContacts(friction, 0, distance), BodyOnFourContacts(friction, 0, 0));
    }
  }
}

TEST(ExtremeNumbersTest, SpeedsWhoseSquaresAreSubnormalAreAsGoodAsNone) {
  for (const Friction friction : kFrictions) {
    SCOPED_TRACE(static_cast<int>(friction));
    for (int exponent = 145; exponent <= 323; exponent += exponent < 170 ? 1 : 17) {
      SCOPED_TRACE(exponent);
      const double speed = std::pow(10, -exponent);
      ExpectSolvedAs(DrivenTree(friction, speed, 0), DrivenTree(friction, 0, 0));
      ExpectSolvedAs(DrivenTree(friction, speed, -speed), DrivenTree(friction, 0, 0));
      ExpectSolvedAs(BodyOnFourContacts(friction, speed, speed),
                     BodyOnFourContacts(friction, 0, 0));
    }
  }
}

TEST(ExtremeNumbersTest, SubnormalBoundsOfRowsAreAsGoodAsNone) {
  const auto driven = [](double force) {
    ProblemArrays arrays;
    arrays.AddTree(Eigen::MatrixXd::Identity(2, 2), Eigen::Vector2d(0.3, -0.1));
    arrays.AddRow({0, 1}, {1, 1});
    arrays.AddRow({0}, {1});
    arrays.rows.velocity_offset = {0.1, 0.2};
    arrays.rows.force_lower = {-10, -force};
    arrays.rows.force_upper = {10, force};
    return arrays;
  };
  for (const double force : {1e-140, 1e-155, 1e-300, 1e-308, 1e-310, kSmallest}) {
    SCOPED_TRACE(force);
    ExpectSolvedAs(driven(force), driven(0));
  }
}

// The velocity is the last one that could be evaluated.
TEST(ExtremeNumbersTest, FailedIslandsHaveFiniteNumbers) {
  for (const Friction friction : kFrictions) {
    for (const double factor : {1e200, 1e300}) {
      ProblemArrays arrays = DrivenTree(friction, factor, -1e-3);
      arrays.AddTree(Matrix3d::Identity(), Vector3d(0, 0, -1));
      for (double& inertia : arrays.trees.dynamics_matrix) inertia *= 1e3;
      const ContactSolution solution = Solve(Checked(arrays), SolverOptions());
      EXPECT_EQ(solution.islands[0].status, SolveStatus::kNumericalFailure);
      for (const std::vector<double>& values :
           {solution.velocity, solution.impulse, solution.angular_impulse,
            solution.contact_velocity, solution.delassus_estimate, solution.row_impulse,
            solution.row_velocity}) {
        for (const double value : values) EXPECT_TRUE(std::isfinite(value));
      }
      EXPECT_TRUE(std::isfinite(solution.cost));
      EXPECT_TRUE(std::isfinite(solution.islands[0].cost));
    }
  }
}

}  // namespace
}  // namespace sap::test
