// Arguments of the functions of model and newton, made from a problem.
#pragma once

#include <algorithm>
#include <vector>

#include "solver/newton/sap_data.h"
#include "tests/support/primal_problem.h"

namespace sap::test {

// All islands of a problem, gathered, at its guess.
struct PreparedProblem {
  explicit PreparedProblem(const ProblemArrays& arrays, bool split_islands = true)
      : problem(Checked(arrays)) {
    graph.Build(problem, split_islands);
    model.Resize(problem, graph);
    data.Resize(graph);
    step.Resize(graph);
    scratch.Resize(graph);
    for (int island = 0; island < graph.islands().count(); ++island) {
      model.Gather(problem, graph, island, StopToken(), nullptr);
    }
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      const auto guess = problem.v_guess().subspan(StartInProblem(slot), graph.dofs()[slot]);
      std::ranges::copy(guess, data.v.begin() + graph.velocity_start()[slot]);
    }
  }

  IslandView View(int island, TaskArena* arena = nullptr) const {
    return {graph, model, island, arena};
  }
  int StartInProblem(int slot) const {
    return problem.velocity_start()[graph.islands().tree_of_slot()[slot]];
  }
  // Velocities of all islands in the order of the problem; v* for trees without constraints.
  VectorL Velocity() const {
    VectorL v = ToVectorL({problem.v_star().begin(), problem.v_star().end()});
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      v.segment(StartInProblem(slot), graph.dofs()[slot]) = Of(data.v, slot);
    }
    return v;
  }
  // The part of a slot of an array in the order of the graph.
  VectorL Of(const std::vector<double>& values, int slot) const {
    const auto begin = values.begin() + graph.velocity_start()[slot];
    return ToVectorL({begin, begin + graph.dofs()[slot]});
  }

  ContactProblem problem;
  ConstraintGraph graph;
  SapModel model;
  SapData data;
  SapStep step;
  SapScratch scratch;
};

}  // namespace sap::test
