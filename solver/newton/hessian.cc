#include "solver/newton/hessian.h"

#include <algorithm>
#include <cstring>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/newton/hub_loops.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

void AssembleBlock(const IslandView& view, const SapData& data, int tree_pair, double* H) {
  const TreePair& pair = view.graph.pairs()[tree_pair];
  ForSize(pair.dofs_low, [&](auto n_low) {
    ForSize(pair.dofs_high, [&](auto n_high) {
      const double* Q = view.model.Q_block(view.graph, tree_pair);
      if (Q == nullptr) {
        std::fill(H, H + n_low * n_high, 0.0);
      } else {
        std::copy(Q, Q + n_low * n_high, H);
      }
      ForPoolsOf(view, [&](auto pool) {
        if (IsQuadratic(pool)) return;
        view.model.pools[pool].jacobians.AddBlock(view.graph, pool.kind(), tree_pair, n_low, n_high,
                                                  data.pools[pool].G, H);
      });
    });
  });
}

void AssembleDiagonalBlock(const IslandView& view, const SapData& data, int slot,
                           const StopToken& stop, double* H) {
  ForSize(view.graph.dofs()[slot], [&](auto n) {
    const double* Q = view.model.Q(view.graph, slot);
    std::copy(Q, Q + n * n, H);
    ForPoolsOf(view, [&](auto pool) {
      if (IsQuadratic(pool)) return;
      const auto& jacobians = view.model.pools[pool].jacobians;
      const auto& layout = view.layout(pool);
      SumOverSides(view.arena, jacobians.SidesOf(layout, slot), n * n, H,
                   [&](auto sides, double* sum) {
                     jacobians.AddDiagonalBlock(layout, sides, n, data.pools[pool].G, stop, sum);
                   });
    });
  });
}

namespace {

// y := H x for one slot: its diagonal block and the pairs it is in.
void MultiplySlot(const IslandView& view, const Hessian& hessian, int slot,
                  const std::vector<double>& x, std::vector<double>* y) {
  const ConstraintGraph& graph = view.graph;
  double* out = y->data() + graph.velocity_start()[slot];
  ForSize(graph.dofs()[slot], [&](auto n) {
    MultiplySymmetric(hessian.diagonal_block(graph, slot), n,
                      x.data() + graph.velocity_start()[slot], out);
    AddOffDiagonalProduct(
        graph, slot, n, [&](const TreePair& pair, int) { return hessian.off_diagonal_block(pair); },
        [&](int other) { return x.data() + graph.velocity_start()[other]; }, out);
  });
}

}  // namespace

void Hessian::Resize(const ConstraintGraph& graph) {
  diagonal_.Reserve(graph.matrix_start().back());
  off_diagonal_.Reserve(graph.block_size());
}

void Hessian::Assemble(const IslandView& view, const SapData& data, const StopToken& stop) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ForChunks(view.arena, range.slot_begin, range.slot_end, kAssembleSlots,
            [&](int begin, int end, int) {
              if (stop.Requested()) return;
              for (int slot = begin; slot < end; ++slot) {
                AssembleDiagonalBlock(view, data, slot, stop,
                                      diagonal_.data() + graph.matrix_start()[slot]);
              }
            });
  ForChunks(view.arena, range.pair_begin, range.pair_end, kAssemblePairs,
            [&](int begin, int end, int) {
              if (stop.Requested()) return;
              for (int p = begin; p < end; ++p) {
                AssembleBlock(view, data, p, off_diagonal_.data() + graph.pairs()[p].block_start);
              }
            });
}

void Hessian::RaiseDiagonal(const IslandView& view, double shift) {
  const ConstraintGraph& graph = view.graph;
  for (int slot = view.range().slot_begin; slot < view.range().slot_end; ++slot) {
    const int n = graph.dofs()[slot];
    double* block = diagonal_.data() + graph.matrix_start()[slot];
    for (int i = 0; i < n; ++i) block[i * n + i] += shift * block[i * n + i];
  }
}

void Hessian::Multiply(const IslandView& view, const std::vector<double>& x, const StopToken& stop,
                       std::vector<double>* y) const {
  ForChunks(view.arena, view.range().slot_begin, view.range().slot_end, kProductSlots,
            [&](int begin, int end, int) {
              if (stop.Requested()) return;
              for (int slot = begin; slot < end; ++slot) MultiplySlot(view, *this, slot, x, y);
            });
}

void AssembleDense(const IslandView& view, const Hessian& hessian, SmallCholesky* H) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  H->Clear(range.num_velocities());
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int at = graph.velocity_start()[slot] - range.velocity_begin;
    const double* block = hessian.diagonal_block(graph, slot);
    ForSize(graph.dofs()[slot], [&](auto dofs) {
      for (int i = 0; i < dofs; ++i) {
        for (int j = 0; j <= i; ++j) H->at(at + i, at + j) = block[i * dofs + j];
      }
    });
  }
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    const TreePair& pair = graph.pairs()[p];
    const int column = graph.velocity_start()[pair.low] - range.velocity_begin;
    const int row = graph.velocity_start()[pair.high] - range.velocity_begin;
    const double* block = hessian.off_diagonal_block(pair);
    for (int i = 0; i < pair.dofs_low; ++i) {
      for (int j = 0; j < pair.dofs_high; ++j) {
        H->at(row + j, column + i) = block[i * pair.dofs_high + j];
      }
    }
  }
}

}  // namespace sap
