// How far two bodies overlap in the first step that detects their contact.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client/cpp/client.h"
#include "client/cpp/simulation/simulation.h"

namespace sap::simulation {

struct LateArrival {
  double deepest{0};          // of pairs that did not overlap in the step before [m]
  int peak_iterations{0};     // of all steps
  double mean_iterations{0};  // over the last 200 steps
};

// Ten seconds of the paper's clutter, forty bodies, plain Newton to 1e-5; arrivals count after
// five, when most is at rest and what is not rolls and topples.
inline LateArrival FindLateArrival(uint64_t seed, bool walls) {
  auto client = client::Client::Connect("embedded:", {.threads = 2});
  EXPECT_TRUE(client.has_value());
  client::SolveOptions options;
  options.solver.relative_tolerance = 1e-5;
  options.solver.newton = NewtonMethod::kPlain;
  Simulation simulation(
      *MakeScene("clutter", {.bodies = 40, .walls = walls, .seed = seed}), 0.01,
      [&](const client::Problem& problem) { return client->Solve(problem, options); });
  LateArrival arrival;
  using Depths = std::map<std::pair<int, int>, double>;
  Depths before;
  for (int i = 0; i < 1000; ++i) {
    const auto step = simulation.Step();
    EXPECT_TRUE(step.has_value() && step->failed_islands == 0) << i;
    if (!step) return arrival;
    arrival.peak_iterations = std::max(arrival.peak_iterations, step->iterations);
    if (i >= 800) arrival.mean_iterations += step->iterations / 200.0;
    const ContactSet& contacts = simulation.contacts();
    Depths now;
    for (int k = 0; k < contacts.size(); ++k) {
      double& depth = now[{contacts.body_a[k], contacts.body_b[k]}];
      depth = std::max(depth, -contacts.signed_distance[k]);
    }
    for (const auto& [pair, depth] : now) {
      const auto known = before.find(pair);
      const bool new_overlap = known == before.end() || known->second <= 0;
      if (i > 500 && new_overlap) arrival.deepest = std::max(arrival.deepest, depth);
    }
    before = std::move(now);
  }
  return arrival;
}

}  // namespace sap::simulation
