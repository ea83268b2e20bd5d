#include "solver/cholesky/half_solve.h"

#include <algorithm>

#include "solver/cholesky/front_layout.h"

namespace sap {

namespace {

using Layout = FrontLayout<double>;
constexpr int kLanes = Layout::kLanes;

// x -= factor y, of one row.
template <int groups>
inline void SubtractRow(double factor, const Lanes4* y, Lanes4* x) {
  for (int g = 0; g < groups; ++g) x[g] = MultiplySubtract(y[g], factor, x[g]);
}

template <int groups>
inline void ScaleRow(double factor, Lanes4* x) {
  for (int g = 0; g < groups; ++g) x[g] *= factor;
}

// x[l] -= sum_k L(l, k) y[k] over `count` columns of the kLanes rows of a sliver.
template <int groups>
void SubtractSliver(const double* L, int count, const Lanes4* y, Lanes4* x) {
  Lanes4 sum[kLanes][groups] = {};
  for (int k = 0; k < count; ++k) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int g = 0; g < groups; ++g) {
        sum[lane][g] = MultiplyAdd(y[k * groups + g], L[k * kLanes + lane], sum[lane][g]);
      }
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int g = 0; g < groups; ++g) x[lane * groups + g] -= sum[lane][g];
  }
}

// x[k] -= sum_l L(l, k) y[l] over `rows` rows of a sliver, for its first `count` columns.
template <int groups>
void SubtractTransposed(const double* L, int count, const Lanes4* y, int rows, Lanes4* x) {
  for (int k = 0; k < count; ++k) {
    for (int lane = 0; lane < rows; ++lane) {
      SubtractRow<groups>(L[k * kLanes + lane], y + lane * groups, x + k * groups);
    }
  }
}

}  // namespace

void BlockPlaces::Find(const EliminationPlan& plan) {
  front.resize(plan.num_blocks());
  row.resize(plan.num_blocks());
  int f = 0;
  int next_row = 0;
  for (const int block : plan.order()) {
    while (next_row >= plan.fronts()[f].pivot_begin + plan.fronts()[f].pivots) ++f;
    front[block] = f;
    row[block] = next_row;
    next_row += plan.block_row_start()[block + 1] - plan.block_row_start()[block];
  }
}

template <int groups>
void HalfSolves<groups>::Start(const EliminationPlan& plan) {
  path_.clear();
  first_row_.assign(plan.num_fronts(), kNotVisited);
  const auto reserve = [](int64_t rows, std::vector<Lanes4>* vectors) {
    const auto size = static_cast<size_t>(rows) * groups;
    if (vectors->size() < size) vectors->resize(size);
  };
  reserve(plan.num_rows() + 1, &y_);  // ForRows reads past a row
  reserve(plan.vector_storage(), &updates_);
}

template <int groups>
Lanes4* HalfSolves<groups>::rows(const HalfSolveFactor& factor, int block) {
  const int first = factor.places.front[block];
  for (int f = first; f >= 0 && !Visits(f); f = factor.plan.fronts()[f].parent) {
    path_.push_back(f);
    const EliminationPlan::Front& front = factor.plan.fronts()[f];
    first_row_[f] = front.pivots;
    std::fill_n(y_.begin() + front.pivot_begin * groups, front.pivots * groups, Lanes4{});
  }
  const int row = factor.places.row[block];
  first_row_[first] = std::min(first_row_[first], row - factor.plan.fronts()[first].pivot_begin);
  return y_.data() + row * groups;
}

// Fronts are numbered children first.
template <int groups>
void HalfSolves<groups>::Run(const HalfSolveFactor& factor, const StopToken& stop) {
  std::ranges::sort(path_);
  for (const int f : path_) {
    if (stop.Cancelled()) return;
    SolveFront(factor, f);
  }
}

template <int groups>
void HalfSolves<groups>::SolveFront(const HalfSolveFactor& factor, int f) {
  const EliminationPlan& plan = factor.plan;
  const EliminationPlan::Front& front = plan.fronts()[f];
  const Layout layout(front.pivots, front.updates);
  const double* L = factor.cholesky.front_factor(front);
  Lanes4* y = y_.data() + front.pivot_begin * groups;
  Lanes4* below = updates_.data() + front.vector_start * groups;
  std::fill_n(below, front.updates * groups, Lanes4{});
  int& first_row = first_row_[f];
  for (int c = front.child_begin; c < front.child_end; ++c) {
    const int child_number = plan.children()[c];
    if (!Visits(child_number)) continue;
    const EliminationPlan::Front& child = plan.fronts()[child_number];
    const Lanes4* from = updates_.data() + child.vector_start * groups;
    for (int r = child.run_begin; r < child.run_end; ++r) {
      const EliminationPlan::RowRun& run = plan.runs()[r];
      first_row = std::min(first_row, run.parent_row);
      Lanes4* to = run.parent_row < front.pivots ? y + run.parent_row * groups
                                                 : below + (run.parent_row - front.pivots) * groups;
      for (int i = 0; i < run.length * groups; ++i) to[i] += from[run.child_row * groups + i];
    }
  }
  // All rows before are zero.
  const int begin = first_row / kLanes * kLanes;
  for (int first = begin; first < front.pivots; first += kLanes) {
    const double* sliver = L + layout.SliverStart(first / kLanes);
    const int count = std::min(kLanes, front.pivots - first);
    Lanes4 x[kLanes * groups] = {};
    std::copy_n(y + first * groups, count * groups, x);
    SubtractSliver<groups>(sliver + begin * kLanes, first - begin, y + begin * groups, x);
    for (int i = 0; i < count; ++i) {
      const double* row = sliver + first * kLanes + i;
      for (int k = 0; k < i; ++k) {
        SubtractRow<groups>(row[k * kLanes], x + k * groups, x + i * groups);
      }
      ScaleRow<groups>(row[i * kLanes], x + i * groups);  // the inverse of the pivot
    }
    std::copy_n(x, count * groups, y + first * groups);
  }
  for (int first = 0; first < front.updates; first += kLanes) {
    const double* sliver = L + layout.SliverStart(layout.pivot_slivers() + first / kLanes);
    const int count = std::min(kLanes, front.updates - first);
    Lanes4 x[kLanes * groups] = {};
    std::copy_n(below + first * groups, count * groups, x);
    SubtractSliver<groups>(sliver + begin * kLanes, front.pivots - begin, y + begin * groups, x);
    std::copy_n(x, count * groups, below + first * groups);
  }
}

template <int groups>
void HalfSolves<groups>::RunBack(const HalfSolveFactor& factor, Fronts fronts,
                                 const StopToken& stop) {
  const bool all = fronts == Fronts::kAll;
  const int count = all ? factor.plan.num_fronts() : static_cast<int>(path_.size());
  for (int k = count - 1; k >= 0; --k) {
    if (stop.Cancelled()) return;
    SolveFrontBack(factor, all ? k : path_[k], fronts);
  }
}

// The parent has put X of the rows below into updates_.
template <int groups>
void HalfSolves<groups>::SolveFrontBack(const HalfSolveFactor& factor, int f, Fronts fronts) {
  const EliminationPlan& plan = factor.plan;
  const EliminationPlan::Front& front = plan.fronts()[f];
  const Layout layout(front.pivots, front.updates);
  const double* L = factor.cholesky.front_factor(front);
  Lanes4* x = y_.data() + front.pivot_begin * groups;
  const Lanes4* below = updates_.data() + front.vector_start * groups;
  if (!Visits(f)) std::fill_n(x, front.pivots * groups, Lanes4{});
  for (int first = 0; first < front.updates; first += kLanes) {
    SubtractTransposed<groups>(L + layout.SliverStart(layout.pivot_slivers() + first / kLanes),
                               front.pivots, below + first * groups,
                               std::min(kLanes, front.updates - first), x);
  }
  for (int first = (front.pivots - 1) / kLanes * kLanes; first >= 0; first -= kLanes) {
    const double* sliver = L + layout.SliverStart(first / kLanes);
    const int count = std::min(kLanes, front.pivots - first);
    for (int i = count - 1; i >= 0; --i) {
      const double* column = sliver + (first + i) * kLanes;
      Lanes4* row = x + (first + i) * groups;
      for (int k = i + 1; k < count; ++k) {
        SubtractRow<groups>(column[k], x + (first + k) * groups, row);
      }
      ScaleRow<groups>(column[i], row);  // the inverse of the pivot
    }
    SubtractTransposed<groups>(sliver, first, x + first * groups, count, x);
  }
  for (int c = front.child_begin; c < front.child_end; ++c) {
    const int child_number = plan.children()[c];
    if (fronts == Fronts::kVisited && !Visits(child_number)) continue;
    const EliminationPlan::Front& child = plan.fronts()[child_number];
    Lanes4* to = updates_.data() + child.vector_start * groups;
    for (int r = child.run_begin; r < child.run_end; ++r) {
      const EliminationPlan::RowRun& run = plan.runs()[r];
      const Lanes4* from = run.parent_row < front.pivots
                               ? x + run.parent_row * groups
                               : below + (run.parent_row - front.pivots) * groups;
      std::copy_n(from, run.length * groups, to + run.child_row * groups);
    }
  }
}

template class HalfSolves<1>;
template class HalfSolves<3>;

}  // namespace sap
