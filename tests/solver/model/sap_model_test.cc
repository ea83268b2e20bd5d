#include "solver/model/sap_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// A problem gathered, with what its contacts come to in the units of the problem.
struct Gathered {
  explicit Gathered(const ProblemArrays& arrays) : problem(Checked(arrays)) {
    graph.Build(problem, true);
    model.Resize(problem, graph);
    for (int island = 0; island < graph.islands().count(); ++island) {
      model.Gather(problem, graph, island, StopToken(), nullptr);
      const ContactRange range = contacts().island(island);
      const double unit = model.constants(island).mass_unit;
      for (int i = range.contact_begin; i < range.contact_end; ++i) {
        const int contact = contacts().order()[i];
        const ConeParameters<double> p = model.pools[kFrictionPool].laws.At(i, double{});
        R_t.resize(problem.num_contacts());
        R_n.resize(problem.num_contacts());
        v_hat.resize(problem.num_contacts());
        R_t[contact] = p.R_t / unit;
        R_n[contact] = p.R_n / unit;
        v_hat[contact] = {p.v_hat_x, p.v_hat_y, p.v_hat_n};
      }
    }
  }
  const ContactLayout& contacts() const { return graph.contacts(ConstraintKind::kFriction); }

  ContactProblem problem;
  ConstraintGraph graph;
  SapModel model;
  std::vector<double> R_t, R_n;
  std::vector<ContactVector<double>> v_hat;
};

// One contact of a unit point mass with the world.
ProblemArrays PointOnGround(const Material& material, double mass = 1) {
  ProblemArrays arrays;
  arrays.AddTree(mass * Eigen::MatrixXd::Identity(3, 3), Eigen::VectorXd::Zero(3));
  arrays.AddContact(0, Eigen::Matrix3d::Identity(), material);
  return arrays;
}

// Figures of a published test of another implementation of the method.
TEST(SapModelTest, RegularizationOfACompliantContactIsAsPublished) {
  ProblemArrays arrays = PointOnGround(
      {.signed_distance = -2.5e-3, .stiffness = 1e5, .relaxation_time = 0.01, .friction = 0.5});
  arrays.time_step = 5e-3;
  arrays.regularization.sigma = 1e-4;
  arrays.contacts.law.delassus_estimate = {3};
  const Gathered gathered(arrays);
  EXPECT_NEAR(gathered.R_t[0], 3e-4, 1e-18);
  EXPECT_NEAR(gathered.R_n[0], 0.13333333333333333, 1e-15);
  EXPECT_NEAR(gathered.v_hat[0].n, 0.16666666666666667, 1e-15);
  EXPECT_EQ(gathered.v_hat[0].x, 0);
}

TEST(SapModelTest, StiffContactIsKeptFromBecomingRigid) {
  const double w = std::sqrt(3.0) / 3;
  constexpr double kPi = 3.14159265358979323846;
  const Gathered gathered(PointOnGround({.stiffness = 1e20}));
  EXPECT_NEAR(gathered.R_n[0], w / (4 * kPi * kPi), 1e-16);
  EXPECT_NEAR(gathered.R_t[0], 1e-3 * w, 1e-18);
}

TEST(SapModelTest, WithoutNearRigidFloorStiffnessAloneCounts) {
  ProblemArrays arrays = PointOnGround({.stiffness = 1e20, .relaxation_time = 0.02});
  arrays.regularization.beta = 0;
  EXPECT_DOUBLE_EQ(Gathered(arrays).R_n[0], 1 / (0.01 * 1e20 * 0.03));
}

TEST(SapModelTest, GivenRegularizationIsTakenAsItIs) {
  ProblemArrays arrays = PointOnGround({});
  arrays.contacts.law.regularization_t = {0.123};
  EXPECT_DOUBLE_EQ(Gathered(arrays).R_t[0], 0.123);
  arrays.contacts.law.regularization_n = {0.456};
  EXPECT_DOUBLE_EQ(Gathered(arrays).R_t[0], 0.123);
  EXPECT_DOUBLE_EQ(Gathered(arrays).R_n[0], 0.456);
}

TEST(SapModelTest, SurfaceVelocityIsTakenFromTheBias) {
  ProblemArrays arrays = PointOnGround({.signed_distance = -1e-3, .relaxation_time = 0.01});
  arrays.contacts.law.surface_velocity = {0.1, -0.2, 0.3};
  const Gathered gathered(arrays);
  EXPECT_DOUBLE_EQ(gathered.v_hat[0].x, -0.1);
  EXPECT_DOUBLE_EQ(gathered.v_hat[0].y, 0.2);
  EXPECT_DOUBLE_EQ(gathered.v_hat[0].n, 0.05 - 0.3);
}

TEST(SapModelTest, ContactThatMovesNothingHasAPositiveRegularization) {
  ProblemArrays arrays = PointOnGround({});
  arrays.contacts.jacobian.assign(9, 0.0);
  const Gathered gathered(arrays);
  EXPECT_GT(gathered.R_t[0], 0);
  EXPECT_GT(gathered.R_n[0], 0);
  EXPECT_TRUE(gathered.model.constants(0).representable);
}

class DelassusRuleTest : public ::testing::TestWithParam<DelassusRule> {};

TEST_P(DelassusRuleTest, RegularizationIsThatOfDenseMatrices) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ProblemArrays arrays = RandomTreesInContact(seed, {.max_dofs = seed % 2 == 0 ? 9 : 45});
    arrays.regularization.rule = GetParam();
    const Gathered gathered(arrays);
    const PrimalProblem primal(arrays);
    for (int i = 0; i < gathered.problem.num_contacts(); ++i) {
      const double R_t = static_cast<double>(primal.R()[3 * i]);
      const double R_n = static_cast<double>(primal.R()[3 * i + 2]);
      EXPECT_NEAR(gathered.R_t[i], R_t, 1e-12 * R_t);
      EXPECT_NEAR(gathered.R_n[i], R_n, 1e-12 * R_n);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, DelassusRuleTest,
                         ::testing::Values(DelassusRule::kFull, DelassusRule::kDiagonal));

TEST(SapModelTest, ScaledByItsMassUnitAnIslandIsOfOrderOne) {
  for (const double mass : {1e-9, 0.3, 1.0, 1e9}) {
    const Gathered gathered(PointOnGround({}, mass));
    const double A = gathered.model.A(gathered.graph, 0)[0];
    EXPECT_GE(A, 1);
    EXPECT_LT(A, 2);
    EXPECT_EQ(A * gathered.model.constants(0).mass_unit, mass);
    EXPECT_EQ(std::exp2(std::round(std::log2(gathered.model.constants(0).mass_unit))),
              gathered.model.constants(0).mass_unit);
  }
}

TEST(SapModelTest, JacobiansStandLowTreeFirstWhicheverWayTheyWereGiven) {
  const ProblemArrays arrays = RandomTreesInContact(7, {.trees = 8, .contacts = 40});
  const Gathered gathered(arrays);
  const std::vector<int64_t> starts = JacobianStarts(arrays);
  const auto& jacobians = gathered.model.pools[kFrictionPool].jacobians;
  for (const ContactGroup& group : gathered.contacts().groups()) {
    for (int i = group.contact_begin; i < group.contact_end; ++i) {
      const int contact = gathered.contacts().order()[i];
      const double* given = arrays.contacts.jacobian.data() + starts[contact];
      for (const int tree : gathered.problem.trees_of_contact(contact)) {
        const int slot = gathered.graph.islands().slot_of_tree()[tree];
        const auto parts = gathered.contacts().parts_of(group);
        const auto part = std::ranges::find(parts, slot, &ContactPart::slot);
        ASSERT_NE(part, parts.end());
        const double* end = given + 3 * part->dofs;
        EXPECT_TRUE(std::equal(given, end, jacobians.of(group, i, *part)));
        given = end;
      }
    }
  }
}

}  // namespace
}  // namespace sap::test
