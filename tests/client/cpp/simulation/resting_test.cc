// Scenes whose bodies at rest are left out, compared with the same scenes kept awake.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "client/cpp/client.h"
#include "client/cpp/simulation/simulation.h"

namespace sap::simulation {
namespace {

constexpr double kStep = 0.005;
constexpr double kHorizon = 0.25;
constexpr double kTolerance = 1e-4;

Body BodyAt(const Shape& shape, const Vector3d& position) {
  Body body = MakeBody(shape, 1000);
  body.position = position;
  return body;
}

Scene OnGround(std::vector<Body> bodies) {
  Scene scene;
  scene.planes = {{Vector3d::UnitZ(), 0}};
  scene.material = {1e7, 0.5};
  scene.bodies = std::move(bodies);
  return scene;
}

// A simulation through an embedded server, with bodies at rest left out or all awake.
class Course {
 public:
  Course(const Scene& scene, bool leaves_out, double tolerance = kTolerance, double sigma = 1e-3)
      : client_(*client::Client::Connect("embedded:", {.threads = 1})),
        simulation_(
            scene, kStep,
            [this, sigma](const client::Problem& problem) {
              client::Problem asked = problem;
              asked.regularization.sigma = sigma;
              return client_.Solve(asked, options_);
            },
            leaves_out ? std::optional(*client::RestingIslands::Make(
                             {.horizon = kHorizon, .tolerance = tolerance, .time_step = kStep}))
                       : std::nullopt) {
    if (leaves_out) options_.solver.rest = {.horizon = kHorizon};
  }

  void Step() {
    const auto step = simulation_.Step();
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_EQ(step->failed_islands, 0);
    last_ = *step;
    steps_of_bodies_ += step->bodies;
    woken_by_pair_ += step->rest.woken_by_pair;
    woken_by_input_ += step->rest.woken_by_input;
    refused_ += step->rest.long_steps_refused;
    long_steps_ += step->rest.long_steps;
  }
  void For(double time) {
    for (int i = 0; i < std::lround(time / kStep); ++i) Step();
  }

  Simulation& simulation() { return simulation_; }
  int size() const { return static_cast<int>(simulation_.scene().bodies.size()); }
  const Body& body(int i) const { return simulation_.scene().bodies[i]; }
  const StepStatistics& last() const { return last_; }
  int64_t steps_of_bodies() const { return steps_of_bodies_; }
  int64_t woken_by_pair() const { return woken_by_pair_; }
  int64_t woken_by_input() const { return woken_by_input_; }
  int64_t refused() const { return refused_; }
  int64_t long_steps() const { return long_steps_; }

 private:
  client::Client client_;
  client::SolveOptions options_;
  Simulation simulation_;
  StepStatistics last_;
  int64_t steps_of_bodies_{0}, woken_by_pair_{0}, woken_by_input_{0}, refused_{0}, long_steps_{0};
};

// Largest distance between the same bodies of two runs.
double Apart(const Course& a, const Course& b) {
  double farthest = 0;
  for (int i = 0; i < a.size(); ++i) {
    farthest = std::max(farthest, (a.body(i).position - b.body(i).position).norm());
  }
  return farthest;
}

const Shape kBox = Shape::Box({0.05, 0.05, 0.05});

TEST(RestingTest, AStackIsLeftOutAndStaysWhereItWouldBe) {
  const Scene scene = OnGround(
      {BodyAt(kBox, {0, 0, 0.05}), BodyAt(kBox, {0.01, 0, 0.15}), BodyAt(kBox, {0, 0.01, 0.25})});
  Course awake(scene, false), run(scene, true);
  awake.For(10);
  run.For(10);
  EXPECT_LT(Apart(awake, run), kTolerance);
  EXPECT_LT(static_cast<double>(run.steps_of_bodies()), 0.1 * 3 * 2000);
  EXPECT_EQ(awake.steps_of_bodies(), 3 * 2000);
  EXPECT_GE(run.long_steps(), 30);
  EXPECT_EQ(run.last().bodies, 0);
  EXPECT_EQ(run.last().contacts, 0);
  EXPECT_EQ(run.simulation().IslandOfBody(), (std::vector<int32_t>{0, 0, 0}));
}

// A ball rolls against a box at rest. Until it comes near, the box is left out; then it is pushed
// as if it had been awake, and rests again.
TEST(RestingTest, WhatIsTouchedWakesAtOnce) {
  Scene scene = OnGround({BodyAt(Shape::Sphere(0.05), {0, 0, 0.05}), BodyAt(kBox, {0.5, 0, 0.05})});
  scene.bodies[0].velocity = {1, 0, 0};
  scene.bodies[0].angular_velocity = {0, 20, 0};
  Course awake(scene, false), run(scene, true);
  bool slept = false;
  for (int i = 0; i < 400; ++i) {
    awake.Step();
    run.Step();
    slept |= run.last().bodies == 1 && run.woken_by_pair() == 0;
    ASSERT_LT(Apart(awake, run), kTolerance) << i;
  }
  EXPECT_TRUE(slept);
  EXPECT_EQ(run.woken_by_pair(), 1);
  EXPECT_GT(run.body(1).position.x(), 0.503);
  EXPECT_LE(run.last().bodies, 1);
}

TEST(RestingTest, WhatIsPushedWakesWithItsIsland) {
  const Scene scene = OnGround(
      {BodyAt(kBox, {0, 0, 0.05}), BodyAt(kBox, {0, 0, 0.15}), BodyAt(kBox, {1, 0, 0.05})});
  Course awake(scene, false), run(scene, true);
  awake.For(2);
  run.For(2);
  ASSERT_EQ(run.last().bodies, 0);
  for (Course* each : {&awake, &run}) each->simulation().SetVelocity(0, {{1, 0, 0}, {0, 0, 0}});
  run.Step();
  awake.Step();
  EXPECT_EQ(run.last().bodies, 2);
  EXPECT_EQ(run.woken_by_input(), 1);
  awake.For(1);
  run.For(1);
  EXPECT_GT(run.body(0).position.x(), 0.01);
  EXPECT_LT(Apart(awake, run), kTolerance);
}

// Regularized friction lets boxes on a slope creep. They are left out nearly always, and long steps
// carry the creep on: without them they would be where they came to rest.
TEST(RestingTest, CreepGoesOnByLongSteps) {
  constexpr double kSigma = 1e-2;
  Scene scene = OnGround({BodyAt(kBox, {0, 0, 0.05})});
  const double slope = 0.3;
  scene.gravity = {9.81 * std::sin(slope), 0, -9.81 * std::cos(slope)};
  Course awake(scene, false, kTolerance, kSigma), run(scene, true, kTolerance, kSigma);
  awake.For(1);
  run.For(1);
  const double start = run.body(0).position.x();
  awake.For(10);
  run.For(10);
  EXPECT_GT(awake.body(0).position.x() - start, 5 * kTolerance);
  EXPECT_LT(Apart(awake, run), kTolerance);
  EXPECT_LT(static_cast<double>(run.steps_of_bodies()), 0.1 * 2200);
}

// A ball upon a ball, off by so much: an unstable equilibrium.
class BallUponABallTest : public testing::TestWithParam<double> {};

// When the upper ball has come down by a tenth of its height.
double TimeOfFall(Course* run) {
  for (int i = 1; i <= 1000; ++i) {
    run->Step();
    if (run->body(1).position.z() < 0.135) return i * kStep;
  }
  return 1000;
}

TEST_P(BallUponABallTest, FallsWithinHalfASecondOfTheOneKeptAwake) {
  const Shape ball = Shape::Sphere(0.05);
  const Scene scene = OnGround({BodyAt(ball, {0, 0, 0.05}), BodyAt(ball, {GetParam(), 0, 0.15})});
  Course awake(scene, false, 1e-5), run(scene, true, 1e-5);
  const double fall = TimeOfFall(&awake);
  EXPECT_LT(fall, 4);
  EXPECT_NEAR(TimeOfFall(&run), fall, 0.5);
  EXPECT_GE(run.long_steps(), 1);
  EXPECT_GE(run.refused(), 1);
}

INSTANTIATE_TEST_SUITE_P(Offsets, BallUponABallTest, testing::Values(1e-6, 1e-7, 1e-8));

}  // namespace
}  // namespace sap::simulation
