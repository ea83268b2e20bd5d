#include "solver/run/solution_scatter.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "solver/model/regularization_cost.h"
#include "solver/pools/cone_laws.h"

namespace sap {

namespace {

// Calls body(start in the problem, start in the graph, dofs) for each tree of the island.
template <typename Body>
void ForTrees(const ContactProblem& problem, const ConstraintGraph& graph, int island,
              Body&& body) {
  const IslandRange& range = graph.island_ranges()[island];
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = graph.islands().tree_of_slot()[slot];
    ForTreeSize(graph.dofs()[slot], [&](auto dofs) {
      body(problem.velocity_start()[tree], graph.velocity_start()[slot], dofs);
    });
  }
}

LawVector<3> Scaled(const ContactVector<double>& vector, double factor) {
  return {factor * vector.x, factor * vector.y, factor * vector.n};
}
template <size_t rows>
std::array<double, rows> Scaled(std::array<double, rows> vector, double factor) {
  for (double& component : vector) component *= factor;
  return vector;
}

// Where the angular impulse of a contact goes.
double* AngularImpulse(const ContactProblem& problem, int contact, ContactSolution* solution) {
  return solution->angular_impulse.data() +
         3 * static_cast<int64_t>(problem.angular_contact(contact));
}

template <int index, size_t rows>
void WriteConstraint(const ContactProblem& problem, PoolIndex<index>, int number,
                     const std::array<double, rows>& gamma, const std::array<double, rows>& v_c,
                     ContactSolution* solution) {
  if constexpr (rows == 1) {
    solution->row_impulse[number] = gamma[0];
    solution->row_velocity[number] = v_c[0] + problem.rows()[number].offset;
  } else {
    const int64_t to = 3 * static_cast<int64_t>(number);
    for (int axis = 0; axis < 3; ++axis) {
      solution->impulse[to + axis] = gamma[axis];
      solution->contact_velocity[to + axis] = v_c[axis] + problem.surface_velocity()[to + axis];
    }
  }
  if constexpr (rows > 3) {
    double* angular = AngularImpulse(problem, number, solution);
    for (int axis = 0; axis < 3; ++axis) {
      const int row = static_cast<int>(rows) - 3 + axis;  // 4 rows have the normal axis alone
      angular[axis] = row < 3 ? 0.0 : gamma[row];
    }
  }
}

void ClearNonFinite(std::span<double> numbers) {
  for (double& number : numbers) {
    if (!std::isfinite(number)) number = 0;
  }
}

template <int index>
void ClearNonFinite(const ContactProblem& problem, PoolIndex<index> pool, int number,
                    ContactSolution* solution) {
  if constexpr (IsRow(pool)) {
    ClearNonFinite({&solution->row_impulse[number], 1});
    ClearNonFinite({&solution->row_velocity[number], 1});
  } else {
    const int64_t to = 3 * static_cast<int64_t>(number);
    ClearNonFinite({&solution->delassus_estimate[number], 1});
    ClearNonFinite({&solution->impulse[to], 3});
    ClearNonFinite({&solution->contact_velocity[to], 3});
    if constexpr (PoolAt<index>::Laws::kRows > 3) {
      ClearNonFinite({AngularImpulse(problem, number, solution), 3});
    }
  }
}

template <int index>
void ClearConstraint(const ContactProblem& problem, PoolIndex<index> pool, int number,
                     ContactSolution* solution) {
  if constexpr (IsRow(pool)) {
    solution->row_impulse[number] = solution->row_velocity[number] = 0;
  } else {
    const int64_t to = 3 * static_cast<int64_t>(number);
    solution->delassus_estimate[number] = 0;
    std::fill_n(solution->impulse.begin() + to, 3, 0.0);
    std::fill_n(solution->contact_velocity.begin() + to, 3, 0.0);
    if constexpr (PoolAt<index>::Laws::kRows > 3) {
      std::fill_n(AngularImpulse(problem, number, solution), 3, 0.0);
    }
  }
}

}  // namespace

void PrepareSolution(const ContactProblem& problem, const ConstraintGraph& graph,
                     ContactSolution* solution) {
  const std::span<const int> island_of_tree = graph.islands().island_of_tree();
  solution->island_of_tree.assign(island_of_tree.begin(), island_of_tree.end());
  solution->velocity.assign(problem.v_star().begin(), problem.v_star().end());
  solution->impulse.resize(3 * static_cast<size_t>(problem.num_contacts()));
  solution->contact_velocity.resize(solution->impulse.size());
  solution->delassus_estimate.resize(problem.num_contacts());
  solution->angular_impulse.resize(3 * static_cast<size_t>(problem.num_angular()));
  solution->row_impulse.resize(problem.num_rows());
  solution->row_velocity.resize(problem.num_rows());
  solution->islands.resize(graph.islands().count());
  solution->shared_islands = 0;
  solution->shared_constraints = 0;
}

void GatherGuess(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                 std::vector<double>* v) {
  const bool is_free = graph.island_ranges()[island].num_constraints() == 0;
  const std::span<const double> from = is_free ? problem.v_star() : problem.v_guess();
  ForTrees(problem, graph, island, [&](int64_t in_problem, int64_t in_graph, int dofs) {
    std::copy_n(from.begin() + in_problem, dofs, v->begin() + in_graph);
  });
}

void ScatterGuess(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                  ContactSolution* solution) {
  ForTrees(problem, graph, island, [&](int64_t in_problem, int64_t, int dofs) {
    std::copy_n(problem.v_guess().begin() + in_problem, dofs,
                solution->velocity.begin() + in_problem);
  });
  ForEachPool([&](auto pool) {
    const auto& layout = LayoutOf(graph, pool);
    const PoolRange range = RangeOf(layout.island(island));
    for (int i = range.begin; i < range.end; ++i) {
      ClearConstraint(problem, pool, layout.order()[i], solution);
    }
  });
}

void ScatterIterate(const ContactProblem& problem, const IslandView& view, const SapData& data,
                    ContactSolution* solution) {
  const ConstraintGraph& graph = view.graph;
  ForTrees(problem, graph, view.island, [&](int64_t in_problem, int64_t in_graph, int dofs) {
    std::copy_n(data.v.begin() + in_graph, dofs, solution->velocity.begin() + in_problem);
  });
  const double unit = view.constants().mass_unit;
  IslandReport& report = solution->islands[view.island];
  const bool failed = report.status == SolveStatus::kNumericalFailure;
  if (failed) ClearNonFinite({&report.cost, 1});
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    const auto& state = data.pools[pool];
    for (int i = range.begin; i < range.end; ++i) {
      const int number = view.layout(pool).order()[i];
      WriteConstraint(problem, pool, number, Scaled(state.gamma.At(i), unit),
                      Scaled(state.v_c.At(i), 1.0), solution);
      if constexpr (!IsRow(pool)) {
        solution->delassus_estimate[number] = view.model.w[number] / unit;
      }
      if (failed) ClearNonFinite(problem, pool, number, solution);
      if constexpr (IsCone(pool)) {
        AddContactCost(problem, number, solution->delassus_estimate[number],
                       &solution->impulse[3 * static_cast<int64_t>(number)], &report);
      } else if constexpr (IsRow(pool)) {
        const double R = view.model.pools[pool].laws.parameters(i).R / unit;
        AddRowCost(problem, number, R, solution->row_impulse[number], &report);
      }
    }
  });
}

}  // namespace sap
