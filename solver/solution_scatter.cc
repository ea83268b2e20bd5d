#include "solver/solution_scatter.h"

#include <algorithm>

namespace sap {

namespace {

// Calls body(start in the problem, start in the graph, dofs) for each tree of the island.
template <typename Body>
void ForTrees(const ContactProblem& problem, const ContactGraph& graph, int island, Body&& body) {
  const IslandRange& range = graph.island_ranges()[island];
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = graph.islands().tree_of_slot()[slot];
    body(problem.velocity_start()[tree], graph.velocity_start()[slot], graph.dofs()[slot]);
  }
}

}  // namespace

void PrepareSolution(const ContactProblem& problem, const ContactGraph& graph,
                     ContactSolution* solution) {
  const std::span<const int> island_of_tree = graph.islands().island_of_tree();
  solution->island_of_tree.assign(island_of_tree.begin(), island_of_tree.end());
  solution->velocity.assign(problem.v_star().begin(), problem.v_star().end());
  solution->impulse.resize(3 * static_cast<size_t>(problem.num_contacts()));
  solution->contact_velocity.resize(solution->impulse.size());
  solution->islands.resize(graph.islands().count());
}

void GatherGuess(const ContactProblem& problem, const ContactGraph& graph, int island,
                 std::vector<double>* v) {
  ForTrees(problem, graph, island, [&](int64_t in_problem, int64_t in_graph, int dofs) {
    std::copy_n(problem.v_guess().begin() + in_problem, dofs, v->begin() + in_graph);
  });
}

void ScatterGuess(const ContactProblem& problem, const ContactGraph& graph, int island,
                  ContactSolution* solution) {
  ForTrees(problem, graph, island, [&](int64_t in_problem, int64_t, int dofs) {
    std::copy_n(problem.v_guess().begin() + in_problem, dofs,
                solution->velocity.begin() + in_problem);
  });
  const IslandRange& range = graph.island_ranges()[island];
  for (int i = range.contact_begin; i < range.contact_end; ++i) {
    const int64_t to = 3 * static_cast<int64_t>(graph.contact_order()[i]);
    std::fill_n(solution->impulse.begin() + to, 3, 0.0);
    std::fill_n(solution->contact_velocity.begin() + to, 3, 0.0);
  }
}

void ScatterIterate(const ContactProblem& problem, const IslandView& view, const SapData& data,
                    ContactSolution* solution) {
  const ContactGraph& graph = view.graph;
  ForTrees(problem, graph, view.island, [&](int64_t in_problem, int64_t in_graph, int dofs) {
    std::copy_n(data.v.begin() + in_graph, dofs, solution->velocity.begin() + in_problem);
  });
  const double unit = view.constants().mass_unit;
  for (int i = view.range().contact_begin; i < view.range().contact_end; ++i) {
    const int64_t to = 3 * static_cast<int64_t>(graph.contact_order()[i]);
    const double* b = problem.surface_velocity().data() + to;
    solution->impulse[to] = data.gamma.x[i] * unit;
    solution->impulse[to + 1] = data.gamma.y[i] * unit;
    solution->impulse[to + 2] = data.gamma.n[i] * unit;
    solution->contact_velocity[to] = data.v_c.x[i] + b[0];
    solution->contact_velocity[to + 1] = data.v_c.y[i] + b[1];
    solution->contact_velocity[to + 2] = data.v_c.n[i] + b[2];
  }
}

}  // namespace sap
