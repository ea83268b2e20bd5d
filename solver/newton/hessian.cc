#include "solver/newton/hessian.h"

#include <algorithm>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/newton/few_rows_view.h"
#include "solver/newton/hub_loops.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

void EvaluateHessians(const IslandView& view, SapData* data) {
  ForConstraints(view, [&](auto pool, int begin, int end) {
    if (IsQuadratic(pool)) return;
    auto& state = data->pools[pool];
    view.model.pools[pool].laws.Hessians(begin, end, state.v_c, &state.G);
  });
}

template <typename View>
void AssembleBlock(const View& view, const SapData& data, int tree_pair, double* H) {
  const TreePair& pair = view.graph.pairs()[tree_pair];
  ForTreeSize(pair.dofs_low, [&](auto n_low) {
    ForTreeSize(pair.dofs_high, [&](auto n_high) {
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

template <typename View>
void AssembleDiagonalBlock(const View& view, const SapData& data, int slot, const StopToken& stop,
                           double* H) {
  ForTreeSize(view.graph.dofs()[slot], [&](auto n) {
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

template void AssembleBlock(const IslandView&, const SapData&, int, double*);
template void AssembleDiagonalBlock(const IslandView&, const SapData&, int, const StopToken&,
                                    double*);

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

template <typename View>
void Hessian::Assemble(const View& view, const SapData& data, const StopToken& stop) {
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

template void Hessian::Assemble(const IslandView&, const SapData&, const StopToken&);
template void Hessian::Assemble(const FewRowsView&, const SapData&, const StopToken&);

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

namespace {

// Large trees are eliminated from their last degree of freedom on (large_tree.h).
struct DofOrder {
  int first, step;  // where the first degree of freedom of a tree stands, and from one to the next

  explicit DofOrder(int dofs)
      : first(dofs > kScalarDofs ? dofs - 1 : 0), step(dofs > kScalarDofs ? -1 : 1) {}
};

// The upper triangle of a tree from row `at` of H on, in reverse, up to the last entry of each row.
void CopyReversed(const double* block, int n, int at, SmallCholesky* H) {
  for (int i = 0; i < n; ++i) {
    const double* row = block + static_cast<ptrdiff_t>(i) * n;
    const int end = EndOfRow(row, i, n);
    double* to = H->RowOf(at + n - 1 - i) + (at + n - end) * SmallCholesky::kStride;
    for (int j = end - 1; j >= i; --j, to += SmallCholesky::kStride) *to = row[j];
  }
}

// Reverses the parts of a vector of the island that large trees have.
void ReverseLargeTrees(const IslandView& view, double* x) {
  const IslandRange& range = view.range();
  if (range.num_velocities() <= kScalarDofs) return;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int dofs = view.graph.dofs()[slot];
    double* part = x + view.graph.velocity_start()[slot] - range.velocity_begin;
    if (dofs > kScalarDofs) std::reverse(part, part + dofs);
  }
}

}  // namespace

void SolveDense(const IslandView& view, const SmallCholesky& H, double* x) {
  ReverseLargeTrees(view, x);
  H.Solve(x);
  ReverseLargeTrees(view, x);
}

bool IsDense(const ConstraintGraph& graph, const IslandRange& range) {
  const int n = range.num_velocities();
  if (n <= kDenseDofs) return true;
  if (n > kDenseTreeDofs) return false;
  const auto dofs = graph.dofs().subspan(range.slot_begin, range.num_trees());
  const int largest = *std::ranges::max_element(dofs);
  return largest > kScalarDofs && n - largest <= kDenseBesides;
}

void AssembleDense(const IslandView& view, const Hessian& hessian, SmallCholesky* H) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  H->Clear(range.num_velocities());
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int at = graph.velocity_start()[slot] - range.velocity_begin;
    const double* block = hessian.diagonal_block(graph, slot);
    if (graph.dofs()[slot] > kScalarDofs) {
      CopyReversed(block, graph.dofs()[slot], at, H);
      continue;
    }
    ForTreeSize(graph.dofs()[slot], [&](auto dofs) {
      for (int i = 0; i < dofs; ++i) {
        double* row = H->RowOf(at + i) + at * SmallCholesky::kStride;
        for (int j = 0; j <= i; ++j) row[j * SmallCholesky::kStride] = block[i * dofs + j];
      }
    });
  }
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    const TreePair& pair = graph.pairs()[p];
    const int column = graph.velocity_start()[pair.low] - range.velocity_begin;
    const int row = graph.velocity_start()[pair.high] - range.velocity_begin;
    const double* block = hessian.off_diagonal_block(pair);
    ForTreeSize(pair.dofs_low, [&](auto n_low) {
      ForTreeSize(pair.dofs_high, [&](auto n_high) {
        const DofOrder low(n_low);
        const DofOrder high(n_high);
        for (int j = 0; j < n_high; ++j) {
          double* to = H->RowOf(row + high.first + j * high.step) +
                       (column + low.first) * SmallCholesky::kStride;
          for (int i = 0; i < n_low; ++i, to += low.step * SmallCholesky::kStride) {
            *to = block[i * n_high + j];
          }
        }
      });
    });
  }
}

}  // namespace sap
