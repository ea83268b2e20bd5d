// A simulation of one of the project's own scenes, whose steps a benchmark solves.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/cpp/simulation/simulation.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"

namespace sap::bench {

// Simulates `steps` steps of 10 ms. solve(problem, step) returns a reference to the ContactSolution
// that the simulation goes on from, which is also the guess of the next step.
template <typename Solve>
tl::expected<void, std::string> RunScene(const std::string& name, int bodies, bool walls, int steps,
                                         Solve&& solve) {
  auto scene = simulation::MakeScene(name, {.bodies = bodies, .walls = walls});
  if (!scene) return tl::unexpected(scene.error());
  ContactProblem problem;
  int step = 0;
  const auto answer =
      [&](const client::Problem& arrays) -> tl::expected<client::Solution, client::Error> {
    if (const auto checked = problem.Reset(ViewOf(arrays)); !checked) {
      return tl::unexpected(
          client::Error{client::ErrorCode::kInvalidArgument, checked.error().Message(), ""});
    }
    const ContactSolution& solved = solve(std::as_const(problem), step);
    client::Solution solution;
    solution.velocity = solved.velocity;
    solution.island_of_tree = solved.island_of_tree;
    return solution;
  };
  simulation::Simulation simulation(*std::move(scene), 0.01, answer);
  for (; step < steps; ++step) {
    if (const auto done = simulation.Step(); !done) return tl::unexpected(done.error().message);
  }
  return {};
}

}  // namespace sap::bench
