// Collisions of free bodies against closed forms and conservation laws.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "client/cpp/client.h"
#include "client/cpp/simulation/dynamics.h"
#include "client/cpp/simulation/simulation.h"

namespace sap::simulation {
namespace {

constexpr double kStep = 0.01;

StepSolver EmbeddedSolver(double tolerance) {
  auto client = client::Client::Connect("embedded:", {.threads = 1});
  EXPECT_TRUE(client.has_value());
  client::SolveOptions options;
  options.solver.relative_tolerance = tolerance;
  return [client = std::make_shared<client::Client>(std::move(*client)),
          options](const client::Problem& problem) { return client->Solve(problem, options); };
}

// Two spheres that just touch along x, the first of them to the right, in empty space.
Scene TwoSpheres(double radius_a, double radius_b) {
  Scene scene;
  scene.gravity.setZero();
  scene.bodies = {MakeBody(Shape::Sphere(radius_a), 1000), MakeBody(Shape::Sphere(radius_b), 1000)};
  // A power of two next to the origin, so that the sum of the radii is exact.
  scene.bodies[0].position = {radius_a, 0, 0};
  scene.bodies[1].position = {-radius_b, 0, 0};
  return scene;
}

// A body at the contact resists n with 1/m and each t with 1/m + r^2 / I = 3.5 / m.
double DelassusEstimate(double inverse_mass) {
  return std::sqrt(1 + 2 * 3.5 * 3.5) / 3 * inverse_mass;
}

TEST(ImpactTest, FrontalImpactOfTwoSpheresIsTheClosedFormOfTheRegularizedContact) {
  Scene scene = TwoSpheres(0.0625, 0.03125);
  scene.bodies[0].velocity = {-1.5, 0, 0};
  scene.bodies[1].velocity = {0.5, 0, 0};
  const double m_a = scene.bodies[0].mass;
  const double m_b = scene.bodies[1].mass;
  Simulation simulation(scene, kStep, EmbeddedSolver(1e-12));
  const auto step = simulation.Step();
  ASSERT_TRUE(step.has_value());
  ASSERT_EQ(step->contacts, 1);
  // v_n + R_n gamma = 0 with v_n = v_n0 + W gamma, near-rigid: R_n = w / (4 pi^2).
  const double W = 1 / m_a + 1 / m_b;
  const double R_n = DelassusEstimate(W) / (4 * EIGEN_PI * EIGEN_PI);
  const double gamma = 2.0 / (W + R_n);
  const auto& bodies = simulation.scene().bodies;
  EXPECT_NEAR(bodies[0].velocity.x(), -1.5 + gamma / m_a, 1e-9);
  EXPECT_NEAR(bodies[1].velocity.x(), 0.5 - gamma / m_b, 1e-9);
  for (const Body& body : bodies) {
    EXPECT_NEAR(body.velocity.tail<2>().norm(), 0, 1e-12);
    EXPECT_NEAR(body.angular_velocity.norm(), 0, 1e-12);
  }
}

TEST(ImpactTest, AfterAFrontalImpactTheSpheresGoOnTogether) {
  Scene scene = TwoSpheres(0.0625, 0.03125);
  scene.bodies[0].velocity = {-1.5, 0, 0};
  scene.bodies[1].velocity = {0.5, 0, 0};
  const double m_a = scene.bodies[0].mass;
  const double m_b = scene.bodies[1].mass;
  const double common = (-1.5 * m_a + 0.5 * m_b) / (m_a + m_b);
  Simulation simulation(scene, kStep, EmbeddedSolver(1e-12));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(simulation.Step().has_value());
  // What the contact gave way in the first step, R_n / (W + R_n) of the speed, comes back at most.
  const auto& bodies = simulation.scene().bodies;
  EXPECT_NEAR(bodies[0].velocity.x(), common, 0.05 * 2.0);
  EXPECT_NEAR(bodies[1].velocity.x(), common, 0.05 * 2.0);
  EXPECT_GE(bodies[0].velocity.x() - bodies[1].velocity.x(), 0);
}

TEST(ImpactTest, AFrictionlessObliqueImpactLeavesWhatIsAcrossTheNormal) {
  Scene scene = TwoSpheres(0.0625, 0.0625);
  scene.material.friction = 0;
  scene.bodies[0].velocity = {-1, 0.3, -0.2};
  scene.bodies[0].angular_velocity = {1, 2, 3};
  Simulation simulation(scene, kStep, EmbeddedSolver(1e-12));
  ASSERT_TRUE(simulation.Step().has_value());
  const auto& bodies = simulation.scene().bodies;
  EXPECT_TRUE(bodies[0].velocity.tail<2>().isApprox(Eigen::Vector2d(0.3, -0.2), 1e-12));
  EXPECT_NEAR(bodies[1].velocity.tail<2>().norm(), 0, 1e-12);
  EXPECT_TRUE(bodies[0].angular_velocity.isApprox(Vector3d(1, 2, 3), 1e-12));
  EXPECT_LT(bodies[0].velocity.x(), bodies[1].velocity.x() + 0.1);
}

// One body on its way to the ground, without gravity.
Scene OneBody(const Shape& shape, double gap, const Vector3d& velocity) {
  Scene scene;
  scene.gravity.setZero();
  scene.planes = {{Vector3d::UnitZ(), 0}};
  scene.bodies = {MakeBody(shape, 1000)};
  scene.bodies[0].position = {0, 0, shape.half_extent.z() + gap};
  scene.bodies[0].velocity = velocity;
  return scene;
}

TEST(GapTest, ABodyThatArrivesWithinTheStepComesToTheSurfaceAndNoFurther) {
  const double gap = 4e-3;
  const double speed = 1;
  Simulation simulation(OneBody(Shape::Sphere(0.05), gap, {0, 0, -speed}), kStep,
                        EmbeddedSolver(1e-12));
  const auto step = simulation.Step();
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->contacts, 1);
  EXPECT_EQ(step->penetration, 0);
  // v_n + R_n gamma = -gap / dt with v_n = -speed + W gamma, near-rigid: R_n = w / (4 pi^2).
  const double W = 1 / simulation.scene().bodies[0].mass;
  const double R_n = DelassusEstimate(W) / (4 * EIGEN_PI * EIGEN_PI);
  const double gamma = (speed - gap / kStep) / (W + R_n);
  const Body& body = simulation.scene().bodies[0];
  EXPECT_NEAR(body.velocity.z(), -speed + W * gamma, 1e-9);
  EXPECT_NEAR(body.position.z() - 0.05, gap + kStep * (-speed + W * gamma), 1e-11);
}

TEST(GapTest, ABodyThatStaysShortOfTheSurfaceIsNotTouched) {
  for (const Shape& shape : {Shape::Sphere(0.05), Shape::Box({0.05, 0.04, 0.03})}) {
    const Vector3d velocity(0.5, -0.3, -0.39);
    Simulation simulation(OneBody(shape, 4e-3, velocity), kStep, EmbeddedSolver(1e-12));
    const auto step = simulation.Step();
    ASSERT_TRUE(step.has_value());
    EXPECT_GT(step->contacts, 0);
    EXPECT_TRUE(simulation.scene().bodies[0].velocity.isApprox(velocity, 1e-12));
    EXPECT_LT(simulation.scene().bodies[0].angular_velocity.norm(), 1e-12);
  }
}

TEST(GapTest, AFastSphereDoesNotPassThroughAThinBox) {
  // In one step it would come from 6 cm before the plate to 14 cm behind it.
  for (const Vector3d& velocity : {Vector3d(0, 0, -20), Vector3d(4, 0, -20)}) {
    Scene scene;
    scene.gravity.setZero();
    scene.bodies = {MakeBody(Shape::Sphere(0.01), 1000),
                    MakeBody(Shape::Box({0.3, 0.3, 0.002}), 8000)};
    scene.bodies[0].position = {0, 0, 0.072};
    scene.bodies[0].velocity = velocity;
    Simulation simulation(scene, kStep, EmbeddedSolver(1e-10));
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(simulation.Step().has_value());
      const auto& bodies = simulation.scene().bodies;
      EXPECT_GT((bodies[1].orientation.conjugate() * (bodies[0].position - bodies[1].position)).z(),
                0.002)
          << i;
    }
  }
}

TEST(GapTest, ABodyThatFliesPastAnotherIsNotPushed) {
  // Past a corner of a box and past a sphere, at a millimeter.
  for (const Shape& other : {Shape::Box({0.05, 0.05, 0.05}), Shape::Sphere(0.05)}) {
    for (const Shape& shape : {Shape::Box({0.05, 0.05, 0.05}), Shape::Sphere(0.05)}) {
      Scene scene;
      scene.gravity.setZero();
      scene.bodies = {MakeBody(shape, 1000), MakeBody(other, 1000)};
      scene.bodies[0].position = {-0.3, 0, 0.101};
      scene.bodies[0].velocity = {2, 0, 0};
      Simulation simulation(scene, kStep, EmbeddedSolver(1e-12));
      int contacts = 0;
      for (int i = 0; i < 30; ++i) {
        const auto step = simulation.Step();
        ASSERT_TRUE(step.has_value());
        contacts += step->contacts;
      }
      EXPECT_GT(contacts, 0);
      EXPECT_TRUE(simulation.scene().bodies[0].velocity.isApprox(Vector3d(2, 0, 0), 1e-9));
      EXPECT_LT(simulation.scene().bodies[1].velocity.norm(), 1e-9);
    }
  }
}

TEST(GapTest, ABoxSlidesOverTheSeamBetweenTwoOthersAsOverOneGround) {
  const Shape cube = Shape::Box({0.05, 0.05, 0.05});
  Scene scene;
  scene.planes = {{Vector3d::UnitZ(), 0}};
  scene.material.friction = 0;
  // Two large tables side by side, and a cube that passes from the one to the other.
  const Shape table = Shape::Box({0.2, 0.2, 0.05});
  scene.bodies = {MakeBody(cube, 1000), MakeBody(table, 1000), MakeBody(table, 1000)};
  scene.bodies[0].position = {-0.15, 0, 0.15};
  scene.bodies[1].position = {-0.2, 0, 0.05};
  scene.bodies[2].position = {0.2, 0, 0.05};
  Simulation simulation(scene, kStep, EmbeddedSolver(1e-12));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(simulation.Step().has_value());
  Scene moving = simulation.scene();
  moving.bodies[0].velocity.x() = 0.7;
  Simulation slide(moving, kStep, EmbeddedSolver(1e-12));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(slide.Step().has_value());
    EXPECT_NEAR(slide.scene().bodies[0].velocity.x(), 0.7, 1e-4) << i;
    EXPECT_NEAR(slide.scene().bodies[0].velocity.z(), 0, 5e-3) << i;
  }
  EXPECT_GT(slide.scene().bodies[0].position.x(), 0.1);
}

struct Momentum {
  Vector3d linear{0, 0, 0};
  Vector3d angular{0, 0, 0};
};

Momentum Total(const std::vector<Body>& bodies) {
  Momentum total;
  for (const Body& body : bodies) {
    total.linear += body.mass * body.velocity;
    total.angular +=
        body.position.cross(body.mass * body.velocity) + WorldInertia(body) * body.angular_velocity;
  }
  return total;
}

TEST(ImpactTest, FreeBodiesThatCollideKeepTheirLinearAndAngularMomentum) {
  // A cloud that falls together. Cubes and spheres: their inertia does not turn with them, so that
  // the integration keeps the angular momentum of each exactly.
  Scene scene = *MakeScene("pile", {.bodies = 64, .walls = false});
  scene.gravity.setZero();
  scene.planes.clear();
  Vector3d middle = Vector3d::Zero();
  for (const Body& body : scene.bodies) middle += body.position / 64;
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (Body& body : scene.bodies) {
    body.velocity = -2 * (body.position - middle) + Vector3d(0.1, 0.2, 0.3);
    body.angular_velocity = Vector3d(uniform(generator), uniform(generator), uniform(generator));
  }
  const Momentum before = Total(scene.bodies);
  Simulation simulation(scene, kStep, EmbeddedSolver(1e-10));
  int contacts = 0;
  for (int i = 0; i < 100; ++i) {
    const auto step = simulation.Step();
    ASSERT_TRUE(step.has_value());
    ASSERT_EQ(step->failed_islands, 0);
    contacts += step->contacts;
  }
  const Momentum after = Total(simulation.scene().bodies);
  EXPECT_GT(contacts, 1000);
  EXPECT_LT((after.linear - before.linear).norm(), 1e-7 * before.linear.norm());
  EXPECT_LT((after.angular - before.angular).norm(), 1e-7 * before.linear.norm());
}

}  // namespace
}  // namespace sap::simulation
