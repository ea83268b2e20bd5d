#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "solver/solve.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using Eigen::Vector3d;
using Eigen::Vector4d;
using Vector6d = Eigen::Matrix<double, 6, 1>;

constexpr double kGravity = 10;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// A disk on three feet, 120 degrees apart, that can slide, rise and spin but not tip: the "pizza
// saver", v = (v_x, v_y, v_z, w_z). Every foot carries a third of the weight and of the friction.
class PizzaSaver {
 public:
  static constexpr double kMass = 3;
  static constexpr double kRadius = 1.5;
  static constexpr double kInertia = kMass * kRadius * kRadius;
  static constexpr double kTimeStep = 0.01;

  double mu{1}, tau_d{kTimeStep}, stiffness{1e4}, beta{1};
  Vector4d force{0, 0, -kMass* kGravity, 0};  // N, and N m about z
  double z{0};                                // height of the feet [m]
  Vector4d v{Vector4d::Zero()};
  Vector4d guess{1, 2, 3, 4};
  SolverOptions options{};
  ContactSolution solution{};

  static Vector4d Masses() { return {kMass, kMass, kMass, kInertia}; }

  ContactProblem Problem() const {
    ProblemArrays arrays;
    arrays.time_step = kTimeStep;
    arrays.regularization.beta = beta;
    const Vector4d v_star = v + kTimeStep * force.cwiseQuotient(Masses());
    arrays.AddTree(Masses().asDiagonal().toDenseMatrix(), v_star);
    arrays.trees.guess_velocity.assign(guess.begin(), guess.end());
    for (int foot = 0; foot < 3; ++foot) {
      const double angle = std::numbers::pi / 5 + 2 * std::numbers::pi / 3 * foot;
      ProblemArrays::Jacobian J(3, 4);
      J << 1, 0, 0, -kRadius * std::sin(angle),  //
          0, 1, 0, kRadius * std::cos(angle),    //
          0, 0, 1, 0;
      arrays.AddContact(
          0, J,
          {.signed_distance = z, .stiffness = stiffness, .relaxation_time = tau_d, .friction = mu});
    }
    return Checked(arrays);
  }

  void Step() {
    solution = Solve(Problem(), options);
    ASSERT_EQ(solution.islands.size(), 1u);
    v = Eigen::Map<const Vector4d>(solution.velocity.data());
    z += kTimeStep * v.z();
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) {
      Step();
      EXPECT_EQ(status(), SolveStatus::kConverged) << "step " << i;
    }
  }

  SolveStatus status() const { return solution.islands[0].status; }
  Vector3d Foot(int foot) const {
    return Eigen::Map<const Vector3d>(solution.impulse.data() + 3 * foot);
  }
  // J' gamma follows from the momentum balance by hand: forces over the feet, moment about z.
  Vector4d GeneralizedImpulse() const {
    Vector4d sum = Vector4d::Zero();
    for (int foot = 0; foot < 3; ++foot) {
      const double angle = std::numbers::pi / 5 + 2 * std::numbers::pi / 3 * foot;
      sum.head<3>() += Foot(foot);
      sum[3] += kRadius * (std::cos(angle) * Foot(foot).y() - std::sin(angle) * Foot(foot).x());
    }
    return sum;
  }
};

void ExpectNear(const Vector4d& a, const Vector4d& b, double tolerance) {
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(PizzaSaverTest, StandsStillUnderItsWeight) {
  PizzaSaver pizza{.beta = 1e-6};
  pizza.Steps(30);
  ExpectNear(pizza.v, Vector4d::Zero(), 1e-6);
  ExpectNear(pizza.GeneralizedImpulse(), {0, 0, 0.3, 0}, 1e-6 * 0.3);
  for (int foot = 0; foot < 3; ++foot) EXPECT_NEAR(pizza.Foot(foot).z(), 0.1, 1e-6 * 0.1);
}

TEST(PizzaSaverTest, ExactGuessIsAnsweredBitForBitInNoIterations) {
  PizzaSaver pizza{.beta = 1e-6};
  pizza.z = -PizzaSaver::kMass * kGravity / (3 * pizza.stiffness);
  pizza.guess = Vector4d::Zero();
  pizza.options.max_iterations = 0;
  pizza.Step();
  EXPECT_EQ(pizza.status(), SolveStatus::kConverged);
  EXPECT_EQ(pizza.solution.islands[0].iterations, 0);
  EXPECT_EQ(pizza.solution.islands[0].factorizations, 0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(pizza.solution.velocity[i]),
              std::bit_cast<uint64_t>(pizza.guess[i]));
  }
}

TEST(PizzaSaverTest, AnswerGivenBackAsGuessIsAnsweredBitForBitInNoIterations) {
  PizzaSaver pizza{.mu = 0.5};
  pizza.force = {2, -1, -30, 20};
  pizza.v = {0.1, 0.2, -0.3, 0.4};
  const Vector4d v_before = pizza.v;
  pizza.Step();
  EXPECT_GT(pizza.solution.islands[0].iterations, 0);
  pizza.guess = pizza.v;
  pizza.v = v_before;
  pizza.z = 0;
  pizza.Step();
  EXPECT_EQ(pizza.solution.islands[0].iterations, 0);
  EXPECT_EQ(pizza.v, pizza.guess);
}

TEST(PizzaSaverTest, SticksUnderATorqueBelowTheLimit) {
  PizzaSaver pizza{.mu = 2.0 / 3, .tau_d = 2 * PizzaSaver::kTimeStep};
  pizza.force[3] = 20;  // the limit is mu m g R = 30
  pizza.Steps(40);
  ExpectNear(pizza.GeneralizedImpulse(), {0, 0, 0.3, -0.2}, 1e-6);
  const double friction = 0.2 / (3 * PizzaSaver::kRadius);
  const double slip_limit = 1e-3 * pizza.mu * PizzaSaver::kTimeStep * kGravity;
  for (int foot = 0; foot < 3; ++foot) {
    EXPECT_NEAR(pizza.Foot(foot).head<2>().norm(), friction, 1e-6);
    EXPECT_NEAR(pizza.Foot(foot).z(), 0.1, 1e-6);
  }
  EXPECT_LE(std::abs(pizza.v[3]) * PizzaSaver::kRadius, slip_limit);
  EXPECT_GT(pizza.v[3], 0);
  EXPECT_LE(pizza.v.head<3>().cwiseAbs().maxCoeff(), 1e-10);
}

// Nothing meets a tolerance of zero but a gradient of zero; rounding has to be noticed.
TEST(PizzaSaverTest, ToleranceOfZeroEndsAtRoundoffWithTheSameValues) {
  PizzaSaver pizza{.mu = 2.0 / 3, .tau_d = 2 * PizzaSaver::kTimeStep};
  pizza.force[3] = 20;
  pizza.options.relative_tolerance = 0;
  pizza.options.absolute_speed_tolerance = 0;
  for (int step = 0; step < 40; ++step) {
    pizza.Step();
    const bool exact = pizza.solution.islands[0].momentum_residual == 0;
    EXPECT_EQ(pizza.status(), exact ? SolveStatus::kConverged : SolveStatus::kStalledAtRoundoff);
    EXPECT_LE(pizza.solution.islands[0].momentum_residual, 1e-12);
  }
  ExpectNear(pizza.GeneralizedImpulse(), {0, 0, 0.3, -0.2}, 1e-6);
}

TEST(PizzaSaverTest, WithoutFrictionAForceAcceleratesItFreely) {
  PizzaSaver pizza{.mu = 0};
  pizza.force[0] = 1;
  pizza.Steps(30);
  ExpectNear(pizza.v, {0.1, 0, 0, 0}, 2e-6);
  ExpectNear(pizza.GeneralizedImpulse(), {0, 0, 0.3, 0}, 2e-6);
}

TEST(PizzaSaverTest, SlidesUnderATorqueAboveTheLimitWithFullFriction) {
  PizzaSaver pizza{.mu = 2.0 / 3};
  pizza.force[3] = 40;
  pizza.Steps(10);
  EXPECT_GT(pizza.v[3], 0);
  for (int foot = 0; foot < 3; ++foot) {
    const double limit = pizza.mu * pizza.Foot(foot).z();
    EXPECT_NEAR(pizza.Foot(foot).head<2>().norm(), limit, 4 * kEpsilon * limit);
  }
}

TEST(PizzaSaverTest, AlmostRigidFeetStick) {
  PizzaSaver pizza{.mu = 2.0 / 3, .tau_d = 2 * PizzaSaver::kTimeStep, .stiffness = 1e20};
  pizza.force[3] = 20;
  pizza.Steps(45);  // it settles by a third per step
  ExpectNear(pizza.GeneralizedImpulse(), {0, 0, 0.3, -0.2}, 1e-6);
  EXPECT_LE(pizza.v.head<3>().cwiseAbs().maxCoeff(), 1e-9);
}

// R_n comes to 3e-17 / kg: ill-conditioned beyond what doubles resolve, but answered.
TEST(PizzaSaverTest, AlmostRigidFeetWithoutRegularizationAreAnswered) {
  PizzaSaver pizza{.mu = 2.0 / 3, .tau_d = 2 * PizzaSaver::kTimeStep, .stiffness = 1e20, .beta = 0};
  pizza.force[3] = 20;
  for (int step = 0; step < 30; ++step) {
    pizza.Step();
    EXPECT_TRUE(pizza.status() == SolveStatus::kConverged ||
                pizza.status() == SolveStatus::kStalledAtRoundoff)
        << static_cast<int>(pizza.status());
    EXPECT_TRUE(pizza.v.allFinite());
  }
  ExpectNear(pizza.GeneralizedImpulse(), {0, 0, 0.3, -0.2}, 1e-4);
  EXPECT_LE(pizza.v.head<3>().cwiseAbs().maxCoeff(), 1e-9);
}

TEST(ClosedFormTest, WithoutContactsVelocitiesAreThoseOfFreeMotion) {
  Random random(1);
  ProblemArrays arrays;
  for (int n : {1, 6, 9}) {
    arrays.AddTree(RandomDynamicsMatrix(&random, n, 0.1, 2), UniformVector(&random, n, -1, 1));
  }
  arrays.trees.guess_velocity.assign(16, 7.0);
  arrays.AddBody(2, Vector3d::Ones(), Vector3d::Zero(), UniformVector(&random, 6, -1, 1));
  arrays.bodies.guess_velocity.assign(6, 7.0);
  const ContactSolution solution = Solve(Checked(arrays));
  std::vector<double> v_star = arrays.trees.free_motion_velocity;
  v_star.insert(v_star.end(), arrays.bodies.free_motion_velocity.begin(),
                arrays.bodies.free_motion_velocity.end());
  EXPECT_EQ(solution.velocity, v_star);
  EXPECT_TRUE(solution.islands.empty());
  EXPECT_TRUE(solution.impulse.empty());
  EXPECT_EQ(solution.cost, 0);
  EXPECT_EQ(solution.island_of_tree, std::vector<int32_t>(4, -1));
}

TEST(ClosedFormTest, EmptyProblemIsAnswered) {
  const ContactSolution solution = Solve(Checked(ProblemArrays()));
  EXPECT_TRUE(solution.velocity.empty());
  EXPECT_TRUE(solution.islands.empty());
}

// What one sphere gets the other gives, and the lighter one changes its velocity the more.
TEST(ClosedFormTest, CollidingSpheresShareTheImpulse) {
  constexpr double kHeavy = 2.5, kLight = 0.3;
  ProblemArrays arrays;
  Vector6d left = Vector6d::Zero(), right = Vector6d::Zero();
  left[0] = 1.5;
  right[0] = -0.5;
  arrays.AddBody(kHeavy, Vector3d::Constant(0.1), {-1, 0, 0}, left);
  arrays.AddBody(kLight, Vector3d::Constant(0.1), {1, 0, 0}, right);
  arrays.AddBodyContact(0, 1, Vector3d::Zero(), {-1, 0, 0}, {.stiffness = 1e6, .friction = 0.5});
  const ContactSolution solution = Solve(Checked(arrays));
  const double change_left = solution.velocity[0] - 1.5;
  const double change_right = solution.velocity[6] + 0.5;
  EXPECT_LT(change_left, 0);
  EXPECT_NEAR(kHeavy * change_left, -kLight * change_right, 20 * kEpsilon * kHeavy);
  EXPECT_NEAR(change_right / change_left, -kHeavy / kLight, 20 * kEpsilon * kHeavy / kLight);
  EXPECT_NEAR(solution.impulse[2], -kHeavy * change_left, 20 * kEpsilon * kHeavy);
  EXPECT_NEAR(solution.contact_velocity[2], solution.velocity[6] - solution.velocity[0],
              4 * kEpsilon);
}

// A point mass on one contact with given R: all three regions can be solved by hand, since the slip
// keeps its direction.
struct PointMass {
  double mass, R_t, R_n, mu, phi0;
  Vector3d v_star, surface;

  Vector3d Solved() const {
    ProblemArrays arrays;
    arrays.AddTree(mass * Eigen::MatrixXd::Identity(3, 3), v_star);
    arrays.AddContact(0, Eigen::Matrix3d::Identity(),
                      {.signed_distance = phi0, .relaxation_time = 0, .friction = mu});
    arrays.contacts.law.regularization_t = {R_t};
    arrays.contacts.law.regularization_n = {R_n};
    arrays.contacts.law.surface_velocity.assign(surface.begin(), surface.end());
    SolverOptions options;
    options.relative_tolerance = 1e-14;
    const ContactSolution solution = Solve(Checked(arrays), options);
    return Eigen::Map<const Vector3d>(solution.impulse.data());
  }

  Vector3d ByHand() const {
    const double v_hat = -phi0 / 0.01;
    const Vector3d v = v_star + surface;
    const double slip = v.head<2>().norm();
    const double gap = v_hat - v.z();
    const Vector3d stick(-v.x() / (R_t + 1 / mass), -v.y() / (R_t + 1 / mass),
                         gap / (R_n + 1 / mass));
    if (gap > 0 && stick.head<2>().norm() <= mu * stick.z()) return stick;
    const double normal = (gap + mu * slip) / (R_n + mu * mu * R_t + (1 + mu * mu) / mass);
    if (normal <= 0) return Vector3d::Zero();
    return {-mu * normal * v.x() / slip, -mu * normal * v.y() / slip, normal};
  }
};

TEST(ClosedFormTest, PointMassOnOneContactIsAsByHandInEveryRegion) {
  Random random(2);
  int seen[3] = {};
  for (int i = 0; i < 3000; ++i) {
    PointMass point{.mass = LogUniform(&random, 0.01, 100),
                    .R_t = 0,
                    .R_n = 0,
                    .mu = UniformInt(&random, 0, 9) == 0 ? 0 : LogUniform(&random, 0.05, 3),
                    .phi0 = Uniform(&random, -1e-3, 1e-3),
                    .v_star = UniformVector(&random, 3, -1, 1),
                    .surface = 0.3 * UniformVector(&random, 3, -1, 1)};
    point.R_t = LogUniform(&random, 1e-3, 1) / point.mass;
    point.R_n = LogUniform(&random, 1e-3, 1) / point.mass;
    const Vector3d expected = point.ByHand();
    const bool open = expected.z() == 0;
    const bool slides = !open && expected.head<2>().norm() >= point.mu * expected.z() * (1 - 1e-12);
    ++seen[open ? 0 : (slides ? 1 : 2)];
    EXPECT_LE((point.Solved() - expected).norm(), 1e-11 * point.mass)
        << "mu " << point.mu << " expected " << expected.transpose();
  }
  for (const int count : seen) EXPECT_GT(count, 200);
}

// A block on a slope steeper than the friction angle gains g (sin - mu cos) dt per step, one on a
// flatter slope creeps at sigma w times its friction.
TEST(ClosedFormTest, BlockOnASlopeSlidesOrSticksByTheFrictionAngle) {
  constexpr double kStep = 0.01;
  for (const double slope : {0.2, 0.9}) {
    const double mu = 0.5;
    Vector3d v = Vector3d::Zero();
    double height = 0;
    for (int step = 0; step < 60; ++step) {
      ProblemArrays arrays;
      const Vector3d pull(kGravity * std::sin(slope), 0, -kGravity * std::cos(slope));
      arrays.AddTree(2 * Eigen::MatrixXd::Identity(3, 3), v + kStep * pull);
      arrays.AddContact(0, Eigen::Matrix3d::Identity(),
                        {.signed_distance = height, .stiffness = 1e6, .friction = mu});
      SolverOptions options;
      options.relative_tolerance = 1e-13;
      const ContactSolution solution = Solve(Checked(arrays), options);
      const Vector3d v_before = v;
      v = Eigen::Map<const Vector3d>(solution.velocity.data());
      height += kStep * v.z();
      if (step < 40) continue;  // until the normal has come to rest
      if (std::tan(slope) > mu) {
        const double gain = kGravity * (std::sin(slope) - mu * std::cos(slope)) * kStep;
        EXPECT_NEAR(v.x() - v_before.x(), gain, 1e-6 * gain);
      } else {
        const double w = std::sqrt(3.0) / 2 / 3;  // |1/m|_F / 3
        const double creep = 1e-3 * w * 2 * kGravity * std::sin(slope) * kStep;
        EXPECT_NEAR(v.x(), creep, 1e-6 * creep);
      }
    }
  }
}

// A conveyor carries what lies on it.
TEST(ClosedFormTest, ConveyorBringsAPointMassToItsSpeed) {
  const PointMass point{.mass = 2,
                        .R_t = 1e-6,
                        .R_n = 1e-3,
                        .mu = 10,
                        .phi0 = 0,
                        .v_star = {0, 0, -0.1},
                        .surface = {-0.4, 0.2, 0}};
  const Vector3d v = point.v_star + point.Solved() / point.mass;
  EXPECT_NEAR(v.x(), 0.4, 1e-5);
  EXPECT_NEAR(v.y(), -0.2, 1e-5);
}

// Balls on top of each other, each as deep in the one below as the paper promises for a single one,
// beta^2 / (4 pi^2) (dt + tau_d) dt g, whatever it carries: they rest.
TEST(LoadPathTest, ATowerRestsAsDeepAsASingleBallAtEveryLevel) {
  ProblemArrays arrays;
  arrays.regularization.rule = DelassusRule::kLoadPath;
  const double dt = arrays.time_step, tau_d = 0.01;
  const double depth = (dt + tau_d) * dt * kGravity / (4 * std::numbers::pi * std::numbers::pi);
  Vector6d v_star = Vector6d::Zero();
  v_star[2] = -dt * kGravity;
  for (const double mass : {1.0, 1000.0, 2.0, 0.5, 5000.0}) {
    const int i = arrays.AddBody(mass, Vector3d::Constant(0.1 * mass),
                                 {0, 0, static_cast<double>(arrays.bodies.mass.size())}, v_star);
    arrays.AddBodyContact(i, i - 1, {0, 0, i - 0.5}, {0, 0, 1},
                          {.signed_distance = -depth, .stiffness = 1e14, .relaxation_time = tau_d});
  }
  arrays.bodies.initial_velocity.assign(30, 0.0);
  const ContactSolution solution =
      Solve(Checked(arrays), {.relative_tolerance = 1e-12, .newton = NewtonMethod::kPlain});
  for (const double v : solution.velocity) EXPECT_NEAR(v, 0, 1e-10);
  EXPECT_NEAR(solution.delassus_estimate[0] * 6003.5, 1, 1e-12);
  EXPECT_NEAR(solution.delassus_estimate[4] * 5000, 1, 1e-12);
}

TEST(LoadPathTest, EstimatesThatNoParameterDependsOnAreZeroInTheSolution) {
  ProblemArrays arrays;
  arrays.AddBody(1, Vector3d::Ones(), Vector3d::Zero(), Vector6d::Zero());
  arrays.AddBodyContact(0, -1, {0, 0, -1}, {0, 0, 1}, {});
  arrays.body_contacts.law.regularization_t = {1e-3};
  EXPECT_GT(Solve(Checked(arrays)).delassus_estimate[0], 0);
  arrays.body_contacts.law.regularization_n = {1e-2};
  EXPECT_EQ(Solve(Checked(arrays)).delassus_estimate[0], 0);
}

}  // namespace
}  // namespace sap::test
