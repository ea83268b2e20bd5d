#include "solver/newton/group_step.h"

#include <algorithm>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/newton/hessian.h"
#include "solver/newton/line_search.h"
#include "solver/newton/sweep_order.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

// Calls body(slot, dofs, at) for the trees of a group, `at` counting degrees of freedom.
template <typename Body>
void ForTrees(const IslandView& view, const TreeGroup& group, Body&& body) {
  int at = 0;
  for (const int slot : group.slots) {
    const int dofs = view.graph.dofs()[slot];
    body(slot, dofs, at);
    at += dofs;
  }
}

// Where the degrees of freedom of a tree of the group begin.
int OffsetInGroup(const IslandView& view, const TreeGroup& group, int slot) {
  int at = 0;
  for (const int* other = group.slots.data(); *other != slot; ++other) {
    at += view.graph.dofs()[*other];
  }
  return at;
}

// momentum += the product of A between this tree and the others of its group with their steps.
void AddCoupledStep(const IslandView& view, const TreeGroup& group, int slot, const double* step,
                    double* momentum) {
  AddOffDiagonalProduct(
      view.graph, slot, view.graph.dofs()[slot],
      [&](const TreePair& pair, int p) {
        const bool inside = group.Contains(pair.low) && group.Contains(pair.high);
        return inside ? view.model.A_block(view.graph, p) : nullptr;
      },
      [&](int other) { return step + OffsetInGroup(view, group, other); }, momentum);
}

// H := the Hessian of a group, n x n row-major.
void AssembleGroup(const IslandView& view, const TreeGroup& group, int n, const SapData& data,
                   const StopToken& stop, double* H) {
  if (group.slots.size() == 1) {
    return AssembleDiagonalBlock(view, data, group.slots.front(), stop, H);
  }
  double block[kMaxGroupDofs * kMaxGroupDofs];
  std::fill(H, H + n * n, 0.0);
  ForTrees(view, group, [&](int slot, int dofs, int at) {
    AssembleDiagonalBlock(view, data, slot, stop, block);
    for (int i = 0; i < dofs; ++i) {
      std::copy_n(block + i * dofs, dofs, H + (at + i) * n + at);
    }
    for (const PairSide& side : view.graph.sides_of(slot)) {
      const TreePair& pair = view.graph.pairs()[side.pair];
      if (!side.is_high || !group.Contains(pair.low)) continue;
      AssembleBlock(view, data, side.pair, block);
      const int column = OffsetInGroup(view, group, pair.low);
      for (int i = 0; i < dofs; ++i) {
        for (int j = 0; j < pair.dofs_low; ++j) {
          const double entry = block[j * dofs + i];
          H[(at + i) * n + column + j] = entry;
          H[(column + j) * n + at + i] = entry;
        }
      }
    }
  });
}

// Adds slope and curvature at alpha of the pools with a quadratic cost, or of all others.
void AddConstraintsAlongStep(const IslandView& view, const TreeGroup& group, const SapData& data,
                             const SapStep& step, double alpha, bool quadratic, LineSlope* slope) {
  double sums[] = {slope->first, slope->second};
  ForPoolsOf(view, [&](auto pool) {
    if (IsQuadratic(pool) != quadratic) return;
    using Jacobians = typename PoolAt<pool>::Jacobians;
    const auto& layout = view.layout(pool);
    for (const int slot : group.slots) {
      SumOverSides(view.arena, Jacobians::SidesOf(layout, slot), 2, sums,
                   [&](auto sides, double* sum) {
                     Jacobians::ForRangesOf(layout, group, sides, [&](int begin, int end) {
                       const LineSlope part = view.model.pools[pool].laws.AlongLine(
                           begin, end, data.pools[pool].v_c, step.pools[pool].v_c, alpha);
                       sum[0] += part.first;
                       sum[1] += part.second;
                     });
                   });
    }
  });
  *slope = {sums[0], sums[1]};
}

// Impulses and G of the constraints of a group.
void EvaluateLaws(const IslandView& view, const TreeGroup& group, SapData* data) {
  ForConstraints(view, group, [&](auto pool, int begin, int end) {
    auto& state = data->pools[pool];
    const auto& laws = view.model.pools[pool].laws;
    laws.Impulses(begin, end, state.v_c, &state.gamma);
    if (!IsQuadratic(pool)) laws.Hessians(begin, end, state.v_c, &state.G);
  });
}

}  // namespace

void StepGroup(const IslandView& view, const TreeGroup& group, int n, const StopToken& stop,
               double* scratch, SapData* data, SapStep* of_step) {
  const std::span<const int> velocity_start = view.graph.velocity_start();
  double* H = scratch;
  double* change = H + n * n;
  double* difference = change + n;  // v - v*, then -grad l, then A dv
  double* step = difference + n;

  EvaluateLaws(view, group, data);
  ForTrees(view, group, [&](int slot, int dofs, int at) {
    const double* v = data->v.data() + velocity_start[slot];
    const double* v_star = view.model.v_star().data() + velocity_start[slot];
    for (int i = 0; i < dofs; ++i) difference[at + i] = v[i] - v_star[i];
    view.model.MultiplyA(view.graph, slot, dofs, difference + at, change + at);
    if (view.range().coupled) {
      AddCoupledChange(view, slot, data->v, view.model.v_star(), change + at);
    }
    for (int i = 0; i < dofs; ++i) step[at + i] = -change[at + i];
    ForPoolsOf(view, [&](auto pool) {
      AddTreeImpulse(view.arena, view.model.pools[pool].jacobians, view.layout(pool), slot, dofs,
                     data->pools[pool].gamma, step + at);
    });
  });
  AssembleGroup(view, group, n, *data, stop, H);
  std::copy_n(step, static_cast<int>(n), difference);
  if (SolveOnceWithTree(H, n, step, stop) != DenseStatus::kOk) return;
  const StartingSlope at_zero = SlopeAtStart(n, difference, change, step);
  if (!(at_zero.f < -at_zero.roundoff)) return;  // this group is where it wants to be

  ForTrees(view, group, [&](int slot, int dofs, int at) {
    view.model.MultiplyA(view.graph, slot, dofs, step + at, difference + at);
    if (view.range().coupled) AddCoupledStep(view, group, slot, step, difference + at);
    ForPoolsOf(view, [&](auto pool) {
      const auto& jacobians = view.model.pools[pool].jacobians;
      const auto& layout = view.layout(pool);
      ForSides(view.arena, jacobians.SidesOf(layout, slot), [&](auto sides) {
        jacobians.AddGroupVelocities(layout, group, sides, dofs, step + at,
                                     &of_step->pools[pool].v_c);
      });
    });
  });
  LineSlope quadratic;
  for (int i = 0; i < n; ++i) {
    quadratic.first += step[i] * change[i];
    quadratic.second += step[i] * difference[i];
  }
  AddConstraintsAlongStep(view, group, *data, *of_step, 0, true, &quadratic);
  const auto slope_at = [&](double alpha) {
    LineSlope slope{quadratic.first + alpha * quadratic.second, quadratic.second};
    AddConstraintsAlongStep(view, group, *data, *of_step, alpha, false, &slope);
    return slope;
  };
  const double alpha = RootOfSlope(at_zero.f, kLocalTolerance, slope_at, at_zero.roundoff);
  ForTrees(view, group, [&](int slot, int dofs, int at) {
    double* v = data->v.data() + velocity_start[slot];
    for (int i = 0; i < dofs; ++i) v[i] += alpha * step[at + i];
  });
  ForConstraints(view, group, [&](auto pool, int begin, int end) {
    for (int i = begin; i < end; ++i) {
      data->pools[pool].v_c.AddScaled(i, alpha, of_step->pools[pool].v_c);
    }
  });
}

}  // namespace sap
