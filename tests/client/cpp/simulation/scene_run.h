// Scenes simulated through an embedded server, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/simulation/simulation.h"

namespace sap::simulation {

inline constexpr double kTimeStep = 0.01;

struct SceneRun {
  std::vector<Body> start;
  std::vector<Body> end;
  std::vector<StepStatistics> steps;
};

// Simulates without a failed step.
inline SceneRun Simulate(std::string_view name, const SceneOptions& scene_options, double time,
                         const SolverOptions& solver_options) {
  auto client = client::Client::Connect("embedded:", {.threads = 2});
  EXPECT_TRUE(client.has_value());
  client::SolveOptions options;
  options.solver = solver_options;
  Simulation simulation(
      *MakeScene(name, scene_options), kTimeStep,
      [&](const client::Problem& problem) { return client->Solve(problem, options); });
  SceneRun run;
  run.start = simulation.scene().bodies;
  for (int i = 0; i < std::lround(time / kTimeStep); ++i) {
    const auto step = simulation.Step();
    if (!step) {
      ADD_FAILURE() << "step " << i << ": " << step.error().message;
      break;
    }
    EXPECT_EQ(step->failed_islands, 0) << "step " << i;
    run.steps.push_back(*step);
  }
  run.end = simulation.scene().bodies;
  return run;
}

}  // namespace sap::simulation
