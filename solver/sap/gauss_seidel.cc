#include "solver/sap/gauss_seidel.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/sap/jacobian_kernels.h"
#include "solver/sap/line_search.h"
#include "solver/sap/tree_scratch.h"

namespace sap {

namespace {

// The search of a tree only has to descend: the next tree undoes its precision anyway.
constexpr double kLocalTolerance = 0.1;
// Local systems up to this size live on the stack.
constexpr int kStackDofs = 32;

// The pairs of a slot, for loops that touch all its contacts.
template <typename Body>
void ForPairsOf(const IslandView& view, int slot, Body&& body) {
  for (const PairSide& side : view.graph.sides_of(slot)) {
    body(view.graph.pairs()[side.pair], side.is_high);
  }
}

// By the impulses of the last evaluation, or of the steps of neighbors since.
bool HasSlidingContact(const IslandView& view, int slot, const SapData& data) {
  bool sliding = false;
  ForPairsOf(view, slot, [&](const ContactPair& pair, bool) {
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      sliding |= view.model.contacts().Slides(i, data.gamma.At(i, double{}));
    }
  });
  return sliding;
}

// Scratch of one local step: H (n x n), then gradient, difference and step (n each).
template <typename Size>
void StepTree(const IslandView& view, int slot, Size n, const StopToken& stop, double* scratch,
              SapData* data, SapStep* of_step) {
  const FrictionContacts& contacts = view.model.contacts();
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
    contacts.Impulses(pair.contact_begin, pair.contact_end, data->v_c, &data->gamma);
    contacts.Hessians(pair.contact_begin, pair.contact_end, data->v_c, &data->G);
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      AddJtGamma(view.model.J(pair, i, is_high), n, data->gamma.At(i, double{}), step);
    }
  });
  AssembleDiagonalBlock(view, data->G, slot, stop, H);
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
      AddJv(view.model.J(pair, i, is_high), n, step, &sum);
      of_step->v_c.Set(i, sum);
    }
  });
  const auto slope_at = [&](double alpha) {
    LineSlope slope{momentum.first + alpha * momentum.second, momentum.second};
    ForPairsOf(view, slot, [&](const ContactPair& pair, bool) {
      const LineSlope part =
          contacts.AlongLine(pair.contact_begin, pair.contact_end, data->v_c, of_step->v_c, alpha);
      slope.first += part.first;
      slope.second += part.second;
    });
    return slope;
  };
  const double alpha = RootOfSlope(f_zero, kLocalTolerance, slope_at, roundoff);
  for (int i = 0; i < n; ++i) v[i] += alpha * step[i];
  ForPairsOf(view, slot, [&](const ContactPair& pair, bool) {
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      data->v_c.x[i] += alpha * of_step->v_c.x[i];
      data->v_c.y[i] += alpha * of_step->v_c.y[i];
      data->v_c.n[i] += alpha * of_step->v_c.n[i];
    }
  });
}

// False if it was stopped in this tree.
bool StepTree(const IslandView& view, int slot, SweptTrees trees, const StopToken& stop,
              SapData* data, SapStep* step) {
  if (trees == SweptTrees::kSliding && view.range().num_trees() > 1 &&
      !HasSlidingContact(view, slot, *data)) {
    return true;
  }
  const int dofs = view.graph.dofs()[slot];
  if (dofs <= kStackDofs) {
    double scratch[kStackDofs * (kStackDofs + 3)];
    ForSize(dofs, [&](auto n) { StepTree(view, slot, n, stop, scratch, data, step); });
    return true;
  }
  if (stop.Requested()) return false;
  thread_local std::vector<double> scratch;
  const size_t needed = static_cast<size_t>(dofs) * (dofs + 3);
  if (scratch.size() < needed) scratch.resize(needed);
  StepTree(view, slot, dofs, stop, scratch.data(), data, step);
  return !stop.Requested();
}

}  // namespace

void SweepOrder::Build(const ContactGraph& graph) {
  slots_.resize(graph.num_slots());
  color_start_.assign(1, 0);
  first_color_.assign(1, 0);
  color_of_slot_.assign(graph.num_slots(), -1);
  for (const IslandRange& range : graph.island_ranges()) {
    next_slot_.assign(ColorIsland(graph, range), 0);
    for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
      ++next_slot_[color_of_slot_[slot]];
    }
    for (int& next : next_slot_) {
      const int begin = color_start_.back();
      color_start_.push_back(begin + next);
      next = begin;
    }
    for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
      slots_[next_slot_[color_of_slot_[slot]]++] = slot;
    }
    first_color_.push_back(static_cast<int>(color_start_.size()) - 1);
  }
}

int SweepOrder::ColorIsland(const ContactGraph& graph, const IslandRange& range) {
  int colors = 0;
  taken_by_.assign(range.num_trees() + 1, -1);
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    for (const PairSide& side : graph.sides_of(slot)) {
      const ContactPair& pair = graph.pairs()[side.pair];
      const int other = pair.low == slot ? pair.high : pair.low;
      if (other >= 0 && color_of_slot_[other] >= 0) taken_by_[color_of_slot_[other]] = slot;
    }
    int color = 0;
    while (taken_by_[color] == slot) ++color;
    color_of_slot_[slot] = color;
    colors = std::max(colors, color + 1);
  }
  return colors;
}

bool Sweep(const IslandView& view, const SweepOrder& order, bool backward, const StopToken& stop,
           SapData* data, SapStep* step, SweptTrees trees) {
  std::atomic<bool> complete{true};
  const int colors = order.num_colors(view.island);
  for (int c = 0; c < colors; ++c) {
    const std::span<const int> slots = order.color(view.island, backward ? colors - 1 - c : c);
    ForChunks(view.arena, 0, static_cast<int>(slots.size()), kSweepSlots,
              [&](int begin, int end, int) {
                bool goes_on = !stop.Requested();
                for (int i = begin; i < end && goes_on; ++i) {
                  goes_on = StepTree(view, slots[i], trees, stop, data, step);
                }
                if (!goes_on) complete.store(false, std::memory_order_relaxed);
              });
  }
  return complete.load(std::memory_order_relaxed);
}

}  // namespace sap
