// Whole scenes, simulated through an embedded server: what the paper reports of them, and what
// bodies at rest have to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "client/cpp/client.h"
#include "client/cpp/simulation/dynamics.h"
#include "client/cpp/simulation/simulation.h"
#include "tests/client/cpp/simulation/late_arrival.h"
#include "tests/client/cpp/simulation/scene_run.h"

namespace sap::simulation {
namespace {

// As the paper: plain Newton to 1e-5.
SolverOptions PaperOptions() {
  SolverOptions options;
  options.relative_tolerance = 1e-5;
  options.newton = NewtonMethod::kPlain;
  return options;
}

double LargestSpeed(const std::vector<Body>& bodies) {
  double largest = 0;
  for (const Body& body : bodies) largest = std::max(largest, body.velocity.norm());
  return largest;
}

int PeakIterations(const std::vector<StepStatistics>& steps) {
  int peak = 0;
  for (const StepStatistics& step : steps) peak = std::max(peak, step.iterations);
  return peak;
}

// Over the last steps.
double MeanIterations(const std::vector<StepStatistics>& steps, size_t last) {
  double sum = 0;
  for (size_t i = steps.size() - last; i < steps.size(); ++i) sum += steps[i].iterations;
  return sum / static_cast<double>(last);
}

double LargestPenetration(const std::vector<StepStatistics>& steps, size_t first, size_t end) {
  double largest = 0;
  for (size_t i = first; i < end; ++i) largest = std::max(largest, steps[i].penetration);
  return largest;
}

class PaperClutterTest : public testing::TestWithParam<bool> {};

// The paper: 21 iterations at step 60, about 3 at rest.
TEST_P(PaperClutterTest, TenSecondsOfFortyBodiesTakeAsFewIterationsAsInThePaper) {
  const SceneRun run = Simulate("clutter", {.bodies = 40, .walls = GetParam()}, 10, PaperOptions());
  ASSERT_EQ(run.steps.size(), 1000u);
  EXPECT_LE(PeakIterations(run.steps), 30);
  EXPECT_LE(MeanIterations(run.steps, 200), 4);
  EXPECT_LE(LargestPenetration(run.steps, 500, 1000), 1.1 * run.steps[500].penetration);
}

INSTANTIATE_TEST_SUITE_P(Walls, PaperClutterTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "With" : "Without"; });

class SeedsOfClutterTest : public testing::TestWithParam<uint64_t> {};

// What turns on while it arrives, and what a contact gives way in one step, is left: at 5 rad/s and
// half a meter per second a quarter of a millimeter, where the step alone covers 5 mm.
TEST_P(SeedsOfClutterTest, NothingArrivesDeepAndIterationsStayAsInThePaper) {
  for (const bool walls : {true, false}) {
    const LateArrival arrival = FindLateArrival(GetParam(), walls);
    EXPECT_LT(arrival.deepest, 2.5e-4) << walls;
    EXPECT_LE(arrival.peak_iterations, 30) << walls;
    EXPECT_LE(arrival.mean_iterations, 4) << walls;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeedsOfClutterTest, testing::Range<uint64_t>(0, 6));

TEST(ClutterTest, BoxesInABinComeToRest) {
  const SceneRun run = Simulate(
      "clutter", {.bodies = 40, .walls = true, .shapes = ShapeMix::kBoxes}, 10, PaperOptions());
  EXPECT_LT(LargestSpeed(run.end), 1e-3);
}

TEST(ClutterTest, EveryBodyStaysInTheBin) {
  const SceneRun run = Simulate("clutter", {.bodies = 40, .walls = true}, 2, {});
  for (const Body& body : run.end) {
    EXPECT_LT(body.position.head<2>().cwiseAbs().maxCoeff(), 0.4);
    EXPECT_GT(body.position.z(), 0.04);
  }
}

TEST(ClutterTest, EnergyOfAPileAtRestNeverGrows) {
  auto client = client::Client::Connect("embedded:", {.threads = 1});
  ASSERT_TRUE(client.has_value());
  Simulation simulation(
      *MakeScene("clutter", {.bodies = 40, .walls = true, .shapes = ShapeMix::kBoxes}), kTimeStep,
      [&](const client::Problem& problem) { return client->Solve(problem); });
  const auto energy = [&] {
    double sum = 0;
    for (const Body& body : simulation.scene().bodies) {
      sum += KineticEnergy(body) + body.mass * 9.81 * body.position.z();
    }
    return sum;
  };
  // At rest: 40 kg no faster than 25 um/s on the average.
  for (double kinetic = 1; kinetic > 1e-8 && simulation.steps_done() < 3000;) {
    const auto step = simulation.Step();
    ASSERT_TRUE(step.has_value());
    if (simulation.steps_done() >= 800) kinetic = step->kinetic_energy;
  }
  ASSERT_LT(simulation.steps_done(), 3000);
  const double at_rest = energy();
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(simulation.Step().has_value());
    // The weight of one box over a hundredth of its penetration.
    EXPECT_LT(energy(), at_rest + 1e-5) << i;
  }
}

TEST(ClutterTest, StacksOfTenDriftLessThanAMillimeterInTenSeconds) {
  const SceneRun run = Simulate("stacks", {}, 10, {});
  ASSERT_EQ(run.end.size(), 90u);
  for (size_t i = 0; i < 90; ++i) {
    const Vector3d drift = run.end[i].position - run.start[i].position;
    EXPECT_LT(drift.head<2>().norm(), 1e-3) << i;
    // The stack starts without load and is compressed by its weight, nothing more.
    EXPECT_LT(std::abs(drift.z()), 5e-3) << i;
  }
  for (const StepStatistics& step : run.steps) ASSERT_EQ(step.islands, 9) << step.step;
  EXPECT_EQ(run.steps.back().contacts, 9 * 10 * 4);
}

TEST(ClutterTest, StacksThatHaveSettledStandStill) {
  const SceneRun settled = Simulate("stacks", {}, 1, {});
  const SceneRun later = Simulate("stacks", {}, 10, {});
  for (size_t i = 0; i < 90; ++i) {
    EXPECT_LT((later.end[i].position - settled.end[i].position).norm(), 1e-3) << i;
  }
}

TEST(ClutterTest, HundredsOfBodiesRunWithoutAFailedStep) {
  Simulate("pile", {.bodies = 300}, 2, {});
  Simulate("heaps", {.bodies = 300}, 2, {});
}

TEST(ClutterTest, TheSameRunHasTheSameBits) {
  const SceneRun first = Simulate("clutter", {}, 1, {});
  const SceneRun again = Simulate("clutter", {}, 1, {});
  for (size_t i = 0; i < first.end.size(); ++i) {
    EXPECT_EQ(first.end[i].position, again.end[i].position);
    EXPECT_EQ(first.end[i].orientation.coeffs(), again.end[i].orientation.coeffs());
    EXPECT_EQ(first.end[i].velocity, again.end[i].velocity);
    EXPECT_EQ(first.end[i].angular_velocity, again.end[i].angular_velocity);
  }
}

}  // namespace
}  // namespace sap::simulation
