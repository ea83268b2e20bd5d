#include "solver/model/sap_model.h"

#include <algorithm>
#include <limits>

#include "solver/cholesky/power_of_two.h"
#include "solver/model/scaled_tree.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/pools/loop_costs.h"

namespace sap {

void SapModel::Resize(const ContactProblem& problem, const ConstraintGraph& graph, bool coulomb) {
  const int velocities = graph.velocity_start().back();
  const int64_t matrices = graph.matrix_start().back();
  constants_.resize(graph.islands().count());
  A_.Reserve(matrices);
  A_factor_.Reserve(matrices);
  problem_ = &problem;
  if (!coupled_trees().empty()) A_blocks_.Reserve(graph.block_size());
  row_ends_.resize(velocities);
  D_.resize(velocities);
  v_star_.resize(velocities);
  w.resize(problem.num_contacts());
  if (problem.regularization().rule == DelassusRule::kLoadPath) load_paths.Resize(problem, graph);
  ForEachPool([&](auto pool) {
    const auto& layout = LayoutOf(graph, pool);
    pools[pool].jacobians.Resize(layout);
    const int constraints = static_cast<int>(layout.order().size());
    pools[pool].laws.Resize(constraints);
    if constexpr (IsCone(pool)) pools[pool].laws.ResizeRounds(coulomb ? constraints : 0);
  });
  if (graph.rows(ConstraintKind::kBilateralRow).num_rows() > 0) {
    Q_.Reserve(matrices);
    Q_blocks_.Reserve(graph.block_size());
  }
}

void SapModel::ResizeRest(const ContactProblem& problem, const ConstraintGraph& graph) {
  rest_.time_step = problem.time_step();
  rest_.first_body = problem.first_body();
  rest_.v_0.resize(graph.velocity_start().back());
}

void SapModel::GatherRest(const ContactProblem& problem, const ConstraintGraph& graph, int island) {
  const IslandRange& range = graph.island_ranges()[island];
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    double* to = rest_.v_0.data() + graph.velocity_start()[slot];
    const int from = problem.velocity_start()[graph.islands().tree_of_slot()[slot]];
    if (problem.v_0().empty()) {
      std::fill_n(to, graph.dofs()[slot], std::numeric_limits<double>::quiet_NaN());
    } else {
      std::copy_n(problem.v_0().data() + from, graph.dofs()[slot], to);
    }
  }
}

void SapModel::Gather(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                      const StopToken& stop, TaskArena* arena) {
  GatherTrees(problem, graph, island);
  if (graph.island_ranges()[island].coupled) GatherCouplings(problem, graph, island);
  if (problem.regularization().rule == DelassusRule::kLoadPath) {
    load_paths.Find(problem, graph, island, A_.data(), stop, arena);
  }
  constants_[island].representable &= GatherConstraints(problem, graph, island, stop, arena);
  if (graph.island_ranges()[island].has(ConstraintKind::kBilateralRow)) {
    AssembleQuadratic(graph, island, stop, arena);
  }
}

void SapModel::GatherTrees(const ContactProblem& problem, const ConstraintGraph& graph,
                           int island) {
  const IslandRange& range = graph.island_ranges()[island];
  const std::span<const int> tree_of_slot = graph.islands().tree_of_slot();
  double largest = 0;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int n = graph.dofs()[slot];
    const double* A = problem.dynamics_matrix().data() + problem.matrix_start()[tree_of_slot[slot]];
    for (int i = 0; i < n; ++i) largest = std::max(largest, A[i * n + i]);
  }
  IslandConstants& constants = constants_[island];
  constants = {};
  constants.mass_unit = PowerOfTwoBelow(largest);

  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = tree_of_slot[slot];
    const int64_t from = problem.matrix_start()[tree];
    double* scaled_A = A_.data() + graph.matrix_start()[slot];
    double* scaled_factor = A_factor_.data() + graph.matrix_start()[slot];
    const double* A = problem.dynamics_matrix().data() + from;
    const double* factor = problem.dynamics_factor().data() + from;
    const int v = graph.velocity_start()[slot];
    const double* v_star = problem.v_star().data() + problem.velocity_start()[tree];
    ForTreeSize(graph.dofs()[slot], [&](auto n) {
      // A mass that vanishes next to the largest of the island cannot be divided by.
      constants.representable &=
          ScaleTree(A, factor, n, constants.mass_unit, scaled_A, scaled_factor, &D_[v]);
      for (int i = 0; i < n; ++i) {
        constants.trace_A += scaled_A[i * n + i];
        v_star_[v + i] = v_star[i];
      }
      if (n > kScalarDofs) {
        std::copy_n(problem.row_ends().data() + problem.velocity_start()[tree], static_cast<int>(n),
                    &row_ends_[v]);
      }
    });
  }
}

// The wire has the block of the higher tree's rows.
void SapModel::GatherCouplings(const ContactProblem& problem, const ConstraintGraph& graph,
                               int island) {
  const IslandRange& range = graph.island_ranges()[island];
  const double per_unit = 1.0 / constants_[island].mass_unit;
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    if (graph.coupled_pair(p) < 0) continue;
    const TreePair& pair = graph.pairs()[p];
    const double* from = problem.coupled_trees().blocks().data() +
                         problem.coupled_trees().pairs()[graph.coupled_pair(p)].block_start;
    double* to = A_blocks_.data() + pair.block_start;
    for (int i = 0; i < pair.dofs_low; ++i) {
      for (int j = 0; j < pair.dofs_high; ++j) {
        to[i * pair.dofs_high + j] = from[j * pair.dofs_low + i] * per_unit;
      }
    }
  }
}

void SapModel::AssembleQuadratic(const ConstraintGraph& graph, int island, const StopToken& stop,
                                 TaskArena* arena) {
  const auto& [laws, jacobians] = pools[kBilateralPool];
  const RowLayout& layout = LayoutOf(graph, kBilateralPool);
  const IslandRange& range = graph.island_ranges()[island];
  ForChunks(arena, range.slot_begin, range.slot_end, kAssembleSlots,
            [&, &laws = laws, &jacobians = jacobians](int begin, int end, int) {
              if (stop.Cancelled()) return;
              for (int slot = begin; slot < end; ++slot) {
                const auto sides = jacobians.SidesOf(layout, slot);
                if (sides.empty()) continue;
                double* Q = Q_.data() + graph.matrix_start()[slot];
                ForTreeSize(graph.dofs()[slot], [&](auto n) {
                  std::copy_n(A(graph, slot), n * n, Q);
                  jacobians.AddDiagonalBlock(layout, sides, n, laws.constant_hessians(), stop, Q);
                });
              }
            });
  ForChunks(arena, range.pair_begin, range.pair_end, kAssemblePairs,
            [&, &laws = laws, &jacobians = jacobians](int begin, int end, int) {
              if (stop.Cancelled()) return;
              for (int p = begin; p < end; ++p) {
                if (graph.couplings(ConstraintKind::kBilateralRow, p).empty()) continue;
                const TreePair& pair = graph.pairs()[p];
                double* Q = Q_blocks_.data() + pair.block_start;
                if (const double* of_A = A_block(graph, p); of_A != nullptr) {
                  std::copy_n(of_A, pair.dofs_low * pair.dofs_high, Q);
                } else {
                  std::fill_n(Q, pair.dofs_low * pair.dofs_high, 0.0);
                }
                jacobians.AddBlock(graph, ConstraintKind::kBilateralRow, p, pair.dofs_low,
                                   pair.dofs_high, laws.constant_hessians(), Q);
              }
            });
}

}  // namespace sap
