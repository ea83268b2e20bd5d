#include "solver/sap/gauss_seidel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/sap/group_step.h"
#include "solver/sap/hessian.h"
#include "solver/sap/jacobian_kernels.h"
#include "solver/sap/line_search.h"

namespace sap {

namespace {

// Local systems up to this size live on the stack.
constexpr int kStackDofs = 32;
static_assert(kMaxGroupDofs <= kStackDofs);

// By the impulses of the last evaluation, or of the steps of neighbors since.
bool HasKinkedConstraint(const IslandView& view, const TreeGroup& group, const SapData& data) {
  bool kinked = false;
  ForConstraintsOf(view, group, [&](auto pool, int begin, int end) {
    const auto& state = data.pools[pool];
    for (int i = begin; i < end; ++i) {
      kinked |= view.model.pools[pool].laws.IsKinked(i, state.v_c, state.gamma);
    }
  });
  return kinked;
}

// The pairs of a slot, for loops that touch all its contacts.
template <typename Body>
void ForPairsOf(const IslandView& view, int slot, Body&& body) {
  const auto& layout = view.layout(kFrictionPool);
  for (const PairSide& side : layout.sides_of(slot)) {
    body(layout.pairs()[side.pair], side.is_high);
  }
}

// StepGroup for one tree with friction contacts alone, by far the most frequent: the kernels are
// inlined with sizes known at compile time. Scratch: H (n x n), then gradient, difference and step
// (n each).
template <typename Size>
void StepTree(const IslandView& view, int slot, Size n, const StopToken& stop, double* scratch,
              SapData* data, SapStep* of_step) {
  const FrictionContacts& laws = view.model.pools[kFrictionPool].laws;
  const ContactJacobians<3>& J = view.model.pools[kFrictionPool].jacobians;
  auto& contacts = data->pools[kFrictionPool];
  ContactVectors& dv_c = of_step->pools[kFrictionPool].v_c;
  const int start = view.graph.velocity_start()[slot];
  double* v = data->v.data() + start;
  const double* v_star = view.model.v_star().data() + start;
  const double* A = view.model.A(view.graph, slot);
  double* H = scratch;
  double* change = H + n * n;
  double* difference = change + n;
  double* step = difference + n;

  for (int i = 0; i < n; ++i) difference[i] = v[i] - v_star[i];
  MultiplySymmetric(A, n, difference, change);
  for (int i = 0; i < n; ++i) step[i] = -change[i];
  ForPairsOf(view, slot, [&](const ContactPair& pair, bool is_high) {
    laws.Impulses(pair.contact_begin, pair.contact_end, contacts.v_c, &contacts.gamma);
    laws.Hessians(pair.contact_begin, pair.contact_end, contacts.v_c, &contacts.G);
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      AddJtGamma(J.of(pair, i, is_high), n, contacts.gamma.At(i, double{}), step);
    }
  });
  AssembleDiagonalBlock(view, *data, slot, stop, H);
  for (int i = 0; i < n; ++i) difference[i] = step[i];  // -grad
  if (FactorTree(H, n, stop) != DenseStatus::kOk) return;
  SolveTree(H, n, step);
  double f_zero = 0;
  double sizes = 0;
  for (int i = 0; i < n; ++i) {
    f_zero -= difference[i] * step[i];
    sizes += std::abs(step[i]) * (std::abs(change[i]) + std::abs(difference[i] + change[i]));
  }
  const double roundoff = RoundoffOf(sizes);
  if (!(f_zero < -roundoff)) return;  // this tree is where it wants to be

  MultiplySymmetric(A, n, step, difference);
  LineSlope momentum;
  for (int i = 0; i < n; ++i) {
    momentum.first += step[i] * change[i];
    momentum.second += step[i] * difference[i];
  }
  ForPairsOf(view, slot, [&](const ContactPair& pair, bool is_high) {
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      ContactVector<double> sum{0, 0, 0};
      AddJv(J.of(pair, i, is_high), n, step, &sum);
      dv_c.Set(i, sum);
    }
  });
  const auto slope_at = [&](double alpha) {
    LineSlope slope{momentum.first + alpha * momentum.second, momentum.second};
    ForPairsOf(view, slot, [&](const ContactPair& pair, bool) {
      AddTo(&slope,
            laws.AlongLine(pair.contact_begin, pair.contact_end, contacts.v_c, dv_c, alpha));
    });
    return slope;
  };
  const double alpha = RootOfSlope(f_zero, kLocalTolerance, slope_at, roundoff);
  for (int i = 0; i < n; ++i) v[i] += alpha * step[i];
  ForPairsOf(view, slot, [&](const ContactPair& pair, bool) {
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      contacts.v_c.AddScaled(i, alpha, dv_c);
    }
  });
}

// False if it was stopped in this group.
bool StepGroup(const IslandView& view, const SweepOrder& order, int number, SweptGroups groups,
               const StopToken& stop, SapData* data, SapStep* step) {
  const TreeGroup group = order.group(number);
  if (groups == SweptGroups::kKinked && order.num_groups(view.island) > 1 &&
      !HasKinkedConstraint(view, group, *data)) {
    return true;
  }
  int dofs = 0;
  for (const int slot : group.slots) dofs += view.graph.dofs()[slot];
  const bool friction_alone = view.range().kinds == 1U << kFrictionPool;
  if (dofs <= kStackDofs) {
    double scratch[kStackDofs * (kStackDofs + 3)];
    if (friction_alone) {
      ForSize(dofs,
              [&](auto n) { StepTree(view, group.slots.front(), n, stop, scratch, data, step); });
    } else {
      StepGroup(view, group, dofs, stop, scratch, data, step);
    }
    return true;
  }
  if (stop.Requested()) return false;
  thread_local std::vector<double> scratch;
  const size_t needed = static_cast<size_t>(dofs) * (dofs + 3);
  if (scratch.size() < needed) scratch.resize(needed);
  if (friction_alone) {
    StepTree(view, group.slots.front(), dofs, stop, scratch.data(), data, step);
  } else {
    StepGroup(view, group, dofs, stop, scratch.data(), data, step);
  }
  return !stop.Requested();
}

}  // namespace

bool Sweep(const IslandView& view, const SweepOrder& order, bool backward, const StopToken& stop,
           SapData* data, SapStep* step, SweptGroups groups) {
  std::atomic<bool> complete{true};
  const int colors = order.num_colors(view.island);
  for (int c = 0; c < colors; ++c) {
    const std::span<const int> of_color = order.color(view.island, backward ? colors - 1 - c : c);
    ForChunks(view.arena, 0, static_cast<int>(of_color.size()), kSweepGroups,
              [&](int begin, int end, int) {
                bool goes_on = !stop.Requested();
                for (int i = begin; i < end && goes_on; ++i) {
                  goes_on = StepGroup(view, order, of_color[i], groups, stop, data, step);
                }
                if (!goes_on) complete.store(false, std::memory_order_relaxed);
              });
  }
  return complete.load(std::memory_order_relaxed);
}

}  // namespace sap
