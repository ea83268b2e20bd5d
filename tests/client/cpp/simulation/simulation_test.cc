#include "client/cpp/simulation/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "client/cpp/simulation/dynamics.h"

namespace sap::simulation {
namespace {

constexpr double kStep = 0.01;

Body BodyAt(const Shape& shape, const Vector3d& position) {
  Body body = MakeBody(shape, 1000);
  body.position = position;
  return body;
}

// A ball above the ground, and a turned box that touches a second ball.
Scene ThreeBodies() {
  Scene scene;
  scene.planes = {{Vector3d::UnitZ(), 0}};
  scene.material = {1e7, 0.7};
  scene.bodies = {BodyAt(Shape::Sphere(0.05), {1, 0, 2}),
                  BodyAt(Shape::Box({0.05, 0.04, 0.03}), {0, 0, 0.0799}),
                  BodyAt(Shape::Sphere(0.05), {0, 0, 0.1598})};
  scene.bodies[1].orientation = Quaterniond(Eigen::AngleAxisd(EIGEN_PI / 2, Vector3d::UnitY()));
  scene.bodies[1].position.z() = 0.0499;
  scene.bodies[2].position.z() = 0.1498;
  scene.bodies[1].velocity = {0.1, 0.2, 0.3};
  scene.bodies[1].angular_velocity = {1, 2, 3};
  return scene;
}

// An answer in which nothing holds anything: every body moves as in free fall.
client::Solution FreeFall(const client::Problem& problem) {
  client::Solution solution;
  solution.velocity = problem.bodies.free_motion_velocity;
  solution.island_of_tree.assign(problem.bodies.mass.size(), -1);
  return solution;
}

TEST(AssembleProblemTest, TheProblemHasTheBodiesAndTheirContactsInTheFormOfTheWire) {
  const Scene scene = ThreeBodies();
  ContactSet contacts;
  CollisionDetector(scene).FindContacts(scene.bodies, {}, &contacts);
  ASSERT_EQ(contacts.size(), 5);  // four corners on the ground, one ball on the box
  client::Problem problem;
  AssembleProblem(scene, contacts, kStep, &problem);

  EXPECT_EQ(problem.time_step, kStep);
  EXPECT_EQ(problem.bodies.mass, (std::vector<double>{scene.bodies[0].mass, scene.bodies[1].mass,
                                                      scene.bodies[2].mass}));
  EXPECT_EQ(problem.bodies.body_id, (std::vector<uint32_t>{0, 1, 2}));
  ASSERT_EQ(problem.bodies.inertia.size(), 18u);
  // The box lies on its side: its moments about x and z are exchanged.
  const Vector3d& moments = scene.bodies[1].inertia;
  const double expected[] = {moments.z(), moments.y(), moments.x(), 0, 0, 0};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(problem.bodies.inertia[6 + i], expected[i], 1e-16);
  EXPECT_EQ(problem.bodies.center_of_mass[5], 0.0499);
  EXPECT_EQ(problem.bodies.guess_velocity[6 + 2], 0.3);
  EXPECT_EQ(problem.bodies.guess_velocity[6 + 5], 3);
  EXPECT_NEAR(problem.bodies.free_motion_velocity[6 + 2], 0.3 - kStep * 9.81, 1e-15);

  EXPECT_EQ(problem.body_contacts.body_a, (std::vector<int32_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(problem.body_contacts.body_b, (std::vector<int32_t>{-1, -1, -1, -1, 2}));
  EXPECT_EQ(problem.body_contacts.law.stiffness, std::vector<double>(5, 1e7));
  EXPECT_EQ(problem.body_contacts.law.friction, std::vector<double>(5, 0.7));
  EXPECT_EQ(problem.body_contacts.law.relaxation_time, std::vector<double>(5, kStep));
  EXPECT_EQ(problem.body_contacts.point.size(), 15u);
  EXPECT_EQ(problem.body_contacts.law.signed_distance.size(), 5u);
  // The ball is above the box, so the normal, from b to a, points down.
  EXPECT_NEAR(problem.body_contacts.normal[14], -1, 1e-12);
}

TEST(AssembleProblemTest, AGapThatIsStillOpenHasNoRelaxationTime) {
  Scene scene = ThreeBodies();
  ContactSet contacts;
  contacts.Add(0, -1, Vector3d::Zero(), Vector3d::UnitZ(), 1e-3);
  contacts.Add(1, -1, Vector3d::Zero(), Vector3d::UnitZ(), 0);
  contacts.Add(1, 2, Vector3d::Zero(), Vector3d::UnitZ(), -1e-3);
  client::Problem problem;
  AssembleProblem(scene, contacts, kStep, &problem);
  EXPECT_EQ(problem.body_contacts.law.relaxation_time, (std::vector<double>{0, kStep, kStep}));
}

// Over many motions no point of the body comes further than the reach.
TEST(MotionOfStepTest, NoPointOfAFreeBodyComesFurtherThanTheReach) {
  Body body = BodyAt(Shape::Box({0.05, 0.04, 0.03}), {1, 2, 3});
  const Vector3d gravity(0, 0, -9.81);
  for (int trial = 0; trial < 100; ++trial) {
    body.velocity = trial * 0.01 * Vector3d::Random();
    body.angular_velocity = (100 - trial) * 0.1 * Vector3d::Random();
    const Motion motion = MotionOfStep(body, gravity, kStep);
    EXPECT_EQ(motion.displacement, Vector3d(kStep * body.velocity));
    Body later = body;
    Advance(FreeMotionVelocity(body, gravity, kStep), kStep, &later);
    for (int corner = 0; corner < 8; ++corner) {
      const Vector3d sign((corner & 1) ? 1 : -1, (corner & 2) ? 1 : -1, (corner & 4) ? 1 : -1);
      const Vector3d arm = sign.cwiseProduct(body.shape.half_extent);
      const Vector3d way =
          later.position + later.orientation * arm - body.position - body.orientation * arm;
      EXPECT_LE(way.norm(), 1.01 * motion.reach) << trial;
    }
  }
}

TEST(SimulationTest, ThePosesFollowTheVelocitiesOfTheAnswer) {
  Simulation simulation(ThreeBodies(), kStep, [](const client::Problem& problem) {
    client::Solution solution = FreeFall(problem);
    for (size_t i = 0; i < solution.velocity.size(); ++i) {
      solution.velocity[i] = static_cast<double>(i);
    }
    return solution;
  });
  ASSERT_TRUE(simulation.Step().has_value());
  Body expected = ThreeBodies().bodies[1];
  Advance({{6, 7, 8}, {9, 10, 11}}, kStep, &expected);
  const Body& moved = simulation.scene().bodies[1];
  EXPECT_EQ(moved.position, expected.position);
  EXPECT_EQ(moved.orientation.coeffs(), expected.orientation.coeffs());
  EXPECT_EQ(moved.velocity, Vector3d(6, 7, 8));
  EXPECT_EQ(moved.angular_velocity, Vector3d(9, 10, 11));
  EXPECT_EQ(simulation.steps_done(), 1);
}

TEST(SimulationTest, TheGuessOfAStepIsTheVelocityOfTheStepBefore) {
  std::vector<client::Problem> problems;
  Simulation simulation(ThreeBodies(), kStep, [&](const client::Problem& problem) {
    problems.push_back(problem);
    return FreeFall(problem);
  });
  ASSERT_TRUE(simulation.Step().has_value());
  ASSERT_TRUE(simulation.Step().has_value());
  EXPECT_EQ(problems[1].bodies.guess_velocity, problems[0].bodies.free_motion_velocity);
}

TEST(SimulationTest, StatisticsSumUpTheIslandsOfTheAnswer) {
  Simulation simulation(ThreeBodies(), kStep, [](const client::Problem& problem) {
    client::Solution solution = FreeFall(problem);
    solution.island_of_tree = {-1, 0, 0};
    solution.islands = {
        {.status = SolveStatus::kConverged, .iterations = 3, .momentum_residual = 1e-7, .dofs = 12},
        {.status = SolveStatus::kIterationLimit,
         .iterations = 9,
         .momentum_residual = 1e-3,
         .dofs = 6},
        {.status = SolveStatus::kStalledAtRoundoff,
         .iterations = 0,
         .momentum_residual = 1e-9,
         .dofs = 6}};
    solution.timings.islands_s = 0.25;
    solution.timings.solve_s = 0.5;
    return solution;
  });
  const auto step = simulation.Step();
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->step, 0);
  EXPECT_EQ(step->contacts, 5);
  EXPECT_EQ(step->islands, 3);
  EXPECT_EQ(step->largest_island_dofs, 12);
  EXPECT_EQ(step->iterations, 9);
  EXPECT_EQ(step->iterations_weighted, (3.0 * 12 + 9 * 6) / 24);
  EXPECT_EQ(step->momentum_error, 1e-3);
  EXPECT_EQ(step->failed_islands, 1);
  EXPECT_EQ(step->worst_status, SolveStatus::kIterationLimit);
  EXPECT_EQ(step->solve_s, 0.75);
  EXPECT_NEAR(step->penetration, 1e-4, 1e-15);
  EXPECT_NEAR(step->kinetic_energy, KineticEnergy(simulation.scene().bodies), 0);
  EXPECT_EQ(simulation.IslandOfBody(), (std::vector<int32_t>{-1, 0, 0}));
}

TEST(SimulationTest, AStepWithoutAnAnswerMovesNothing) {
  const client::Error refusal{client::ErrorCode::kUnavailable, "nobody there", ""};
  Simulation simulation(ThreeBodies(), kStep, [&](const client::Problem&) {
    return tl::expected<client::Solution, client::Error>(tl::unexpected(refusal));
  });
  const auto step = simulation.Step();
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().message, "nobody there");
  EXPECT_EQ(simulation.steps_done(), 0);
  EXPECT_EQ(simulation.scene().bodies[0].position, ThreeBodies().bodies[0].position);
}

TEST(SimulationTest, AnAnswerToAnotherProblemIsRefused) {
  Simulation simulation(ThreeBodies(), kStep, [](const client::Problem& problem) {
    client::Solution solution = FreeFall(problem);
    solution.velocity.pop_back();
    return solution;
  });
  const auto step = simulation.Step();
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().message, "the answer has 17 velocities; the problem has 18");
}

}  // namespace
}  // namespace sap::simulation
