// A simulation of one of the project's own scenes, whose steps a benchmark solves.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/cpp/simulation/simulation.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"

namespace sap::bench {

// Simulates `steps` steps of 10 ms. solve(view, step) returns the ContactSolution that
// the simulation goes on from, which is also the guess of the next step.
template <typename Solve>
tl::expected<void, std::string> RunSceneByViews(const std::string& name, int bodies, bool walls,
                                                int steps, Solve&& solve) {
  auto scene = simulation::MakeScene(name, {.bodies = bodies, .walls = walls});
  if (!scene) return tl::unexpected(scene.error());
  int step = 0;
  const auto answer =
      [&](const client::Problem& arrays) -> tl::expected<client::Solution, client::Error> {
    const tl::expected<const ContactSolution*, ProblemError> solved = solve(ViewOf(arrays), step);
    if (!solved) {
      return tl::unexpected(
          client::Error{client::ErrorCode::kInvalidArgument, solved.error().Message(), ""});
    }
    client::Solution solution;
    solution.velocity = (*solved)->velocity;
    solution.island_of_tree = (*solved)->island_of_tree;
    return solution;
  };
  simulation::Simulation simulation(*std::move(scene), 0.01, answer);
  for (; step < steps; ++step) {
    if (const auto done = simulation.Step(); !done) return tl::unexpected(done.error().message);
  }
  return {};
}

// The same with solve(problem, step), for the checked problem.
template <typename Solve>
tl::expected<void, std::string> RunScene(const std::string& name, int bodies, bool walls, int steps,
                                         Solve&& solve) {
  ContactProblem problem;
  return RunSceneByViews(name, bodies, walls, steps,
                         [&](const ContactProblemView& view,
                             int step) -> tl::expected<const ContactSolution*, ProblemError> {
                           if (const auto checked = problem.Reset(view); !checked) {
                             return tl::unexpected(checked.error());
                           }
                           return &solve(std::as_const(problem), step);
                         });
}

}  // namespace sap::bench
