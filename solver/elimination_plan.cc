#include "solver/elimination_plan.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "solver/elimination_tree.h"
#include "solver/front_layout.h"
#include "solver/minimum_degree.h"
#include "solver/nested_dissection.h"
#include "solver/storage_planner.h"
#include "solver/supernodes.h"

namespace sap {
namespace {

Supernodes OrderByMinimumDegree(const BlockGraph& graph) {
  return Supernodes::Make(graph, EliminationTree::Make(graph, MinimumDegreeOrder(graph)));
}

std::optional<Supernodes> OrderByNestedDissection(const BlockGraph& graph) {
  std::optional<std::vector<int>> order = NestedDissectionOrder(graph);
  if (!order) return std::nullopt;
  return Supernodes::Make(graph, EliminationTree::Make(graph, *std::move(order)));
}

double TotalCost(const Supernodes& nodes) {
  return std::accumulate(nodes.cost.begin(), nodes.cost.end(), 0.0);
}

// The supernodes of the better ordering, and which that is.
std::pair<Supernodes, Ordering> OrderBlocks(const BlockGraph& graph, Ordering ordering) {
  if (ordering == Ordering::kNestedDissection) {
    std::optional<Supernodes> dissected = OrderByNestedDissection(graph);
    if (dissected) return {*std::move(dissected), Ordering::kNestedDissection};
  }
  Supernodes nodes = OrderByMinimumDegree(graph);
  // Dissection takes the time of some 6000 cycles per block. In piles of spheres minimum degree is
  // as good up to 300 blocks or so; at 1000, with more than 10,000 cycles per block, dissection
  // saves a fifth of every factorization or more. Chains and trees never get there.
  constexpr int kMinBlocks = 200;
  constexpr double kMinCyclesPerBlock = 10000.0;
  if (ordering == Ordering::kAuto && graph.num_blocks() > kMinBlocks &&
      TotalCost(nodes) > kMinCyclesPerBlock * graph.num_blocks()) {
    std::optional<Supernodes> dissected = OrderByNestedDissection(graph);
    if (dissected && TotalCost(*dissected) < TotalCost(nodes)) {
      return {*std::move(dissected), Ordering::kNestedDissection};
    }
  }
  return {std::move(nodes), Ordering::kMinimumDegree};
}

}  // namespace

class EliminationPlanBuilder {
 public:
  EliminationPlanBuilder(const BlockPattern& pattern, Ordering ordering)
      : pattern_(pattern), graph_(BlockGraph::FromPattern(pattern)) {
    std::tie(nodes_, plan_.ordering_) = OrderBlocks(graph_, ordering);
  }

  EliminationPlan Build() {
    LocateValues();
    MakeFronts();
    FindRows();
    SplitTasks();
    PlaceFactor();
    PlaceUpdates();
    plan_.order_ = std::move(nodes_.order);
    return std::move(plan_);
  }

 private:
  void LocateValues();
  void MakeFronts();
  void FindRows();
  void CollectRows(int f);
  void AddMatrixBlocks(int f);
  void AddRuns(int child, int parent);
  void SplitTasks();
  void PlaceFactor();
  void PlaceUpdates();

  BlockPattern pattern_;
  BlockGraph graph_;
  Supernodes nodes_;
  EliminationPlan plan_;
  std::vector<int> position_;                 // [N] of each block in the order
  std::vector<int> row_position_;             // [N + 1] first row of the block eliminated k-th
  std::vector<std::vector<int>> front_rows_;  // positions of the blocks below the pivots
  std::vector<int> mark_;                     // [N] front that last collected the position
  std::vector<int> local_row_;                // [N] by position, of the front at hand
};

void EliminationPlanBuilder::LocateValues() {
  const int num_blocks = pattern_.num_blocks();
  plan_.diagonal_start_.reserve(num_blocks + 1);
  plan_.block_row_start_.reserve(num_blocks + 1);
  plan_.off_diagonal_start_.reserve(pattern_.num_edges() + 1);
  row_position_.reserve(num_blocks + 1);
  plan_.diagonal_start_.assign(1, 0);
  plan_.off_diagonal_start_.assign(1, 0);
  plan_.block_row_start_.assign(1, 0);
  for (const int64_t n : pattern_.block_size) {
    plan_.diagonal_start_.push_back(plan_.diagonal_start_.back() + n * n);
    plan_.block_row_start_.push_back(plan_.block_row_start_.back() + static_cast<int>(n));
  }
  for (int e = 0; e < pattern_.num_edges(); ++e) {
    const int64_t n_a = pattern_.block_size[pattern_.edge_a[e]];
    const int64_t n_b = pattern_.block_size[pattern_.edge_b[e]];
    plan_.off_diagonal_start_.push_back(plan_.off_diagonal_start_.back() + n_a * n_b);
  }
  plan_.num_rows_ = plan_.block_row_start_.back();
  position_.resize(num_blocks);
  row_position_.assign(1, 0);
  for (int k = 0; k < num_blocks; ++k) {
    position_[nodes_.order[k]] = k;
    row_position_.push_back(row_position_.back() + graph_.weight[nodes_.order[k]]);
  }
}

void EliminationPlanBuilder::MakeFronts() {
  const int count = nodes_.size();
  plan_.fronts_.resize(count);
  std::vector<int> num_children(count, 0);
  std::vector<int> depth(count, 1);  // fronts on the path to the root
  for (int f = count - 1; f >= 0; --f) {
    EliminationPlan::Front& front = plan_.fronts_[f];
    front = {};
    front.pivots = nodes_.pivots[f];
    front.updates = nodes_.updates[f];
    front.pivot_begin = row_position_[nodes_.block_start[f]];
    front.parent = nodes_.parent[f];
    if (front.parent >= 0) {
      ++num_children[front.parent];
      depth[f] = depth[front.parent] + 1;
    }
    const int64_t p = front.pivots;
    plan_.factor_entries_ += p * (p + 1) / 2 + p * front.updates;
    plan_.factor_flops_ += FrontFlops(front.pivots, front.updates);
    plan_.height_ = std::max(plan_.height_, depth[f]);
    plan_.largest_front_ = std::max(plan_.largest_front_, front.pivots + front.updates);
  }
  int next = 0;
  for (int f = 0; f < count; ++f) {
    plan_.fronts_[f].child_begin = plan_.fronts_[f].child_end = next;
    next += num_children[f];
  }
  plan_.children_.resize(next);
  for (int f = 0; f < count; ++f) {
    const int parent = plan_.fronts_[f].parent;
    if (parent >= 0) plan_.children_[plan_.fronts_[parent].child_end++] = f;
  }
}

// Blocks below the pivots of front f: neighbours of its blocks and rows of its children, those
// eliminated here left out.
void EliminationPlanBuilder::CollectRows(int f) {
  const EliminationPlan::Front& front = plan_.fronts_[f];
  const int end = nodes_.block_start[f + 1];
  std::vector<int>& rows = front_rows_[f];
  const auto add = [&](int k) {
    if (k < end || mark_[k] == f) return;
    mark_[k] = f;
    rows.push_back(k);
  };
  for (int c = front.child_begin; c < front.child_end; ++c) {
    for (const int k : front_rows_[plan_.children_[c]]) add(k);
  }
  for (int k = nodes_.block_start[f]; k < end; ++k) {
    for (const int neighbor : graph_.neighbors(nodes_.order[k])) add(position_[neighbor]);
  }
  if (!std::is_sorted(rows.begin(), rows.end())) std::sort(rows.begin(), rows.end());
}

void EliminationPlanBuilder::FindRows() {
  const int count = nodes_.size();
  front_rows_.resize(count);
  plan_.matrix_blocks_.reserve(pattern_.num_blocks() + pattern_.num_edges());
  mark_.assign(graph_.num_blocks(), -1);
  local_row_.assign(graph_.num_blocks(), 0);
  for (int f = 0; f < count; ++f) {
    EliminationPlan::Front& front = plan_.fronts_[f];
    CollectRows(f);
    int row = 0;
    for (int k = nodes_.block_start[f]; k < nodes_.block_start[f + 1]; ++k) {
      local_row_[k] = row;
      row += graph_.weight[nodes_.order[k]];
    }
    for (const int k : front_rows_[f]) {
      local_row_[k] = row;
      row += graph_.weight[nodes_.order[k]];
    }
    AddMatrixBlocks(f);
    for (int c = front.child_begin; c < front.child_end; ++c) {
      AddRuns(plan_.children_[c], f);
      front_rows_[plan_.children_[c]] = {};
    }
  }
}

void EliminationPlanBuilder::AddMatrixBlocks(int f) {
  using Kind = EliminationPlan::MatrixBlock::Kind;
  std::vector<EliminationPlan::MatrixBlock>& blocks = plan_.matrix_blocks_;
  plan_.fronts_[f].entry_begin = static_cast<int>(blocks.size());
  for (int k = nodes_.block_start[f]; k < nodes_.block_start[f + 1]; ++k) {
    const int block = nodes_.order[k];
    const int size = graph_.weight[block];
    const int column = local_row_[k];
    blocks.push_back({plan_.diagonal_start_[block], size, size, column, column, Kind::kDiagonal});
    for (int m = graph_.start[block]; m < graph_.start[block + 1]; ++m) {
      const int neighbor = graph_.neighbor[m];
      if (position_[neighbor] < k) continue;
      const int e = graph_.edge[m];
      const bool as_stored = pattern_.edge_a[e] == neighbor;
      const int neighbor_size = graph_.weight[neighbor];
      blocks.push_back({plan_.off_diagonal_start_[e], as_stored ? neighbor_size : size,
                        as_stored ? size : neighbor_size, local_row_[position_[neighbor]], column,
                        as_stored ? Kind::kAsStored : Kind::kTransposed});
    }
  }
  plan_.fronts_[f].entry_end = static_cast<int>(blocks.size());
}

// Requires local_row_ of the parent.
void EliminationPlanBuilder::AddRuns(int child, int parent) {
  const int pivots = plan_.fronts_[parent].pivots;
  std::vector<EliminationPlan::RowRun>& runs = plan_.runs_;
  plan_.fronts_[child].run_begin = static_cast<int>(runs.size());
  int child_row = 0;
  for (const int k : front_rows_[child]) {
    const int length = graph_.weight[nodes_.order[k]];
    const int parent_row = local_row_[k];
    const bool continues = child_row > 0 &&
                           runs.back().parent_row + runs.back().length == parent_row &&
                           parent_row != pivots;
    if (continues) {
      runs.back().length += length;
    } else {
      runs.push_back({child_row, parent_row, length});
    }
    child_row += length;
  }
  plan_.fronts_[child].run_end = static_cast<int>(runs.size());
}

// Subtrees small enough to balance many threads become tasks, small neighbours one task together;
// the fronts above them are worked on one after another, by all threads.
void EliminationPlanBuilder::SplitTasks() {
  constexpr double kTasks = 24.0;
  constexpr double kMinTaskCycles = 200e3;  // worth waking up a thread
  const int count = nodes_.size();
  std::vector<double> subtree_cost = nodes_.cost;
  std::vector<int> subtree_begin(count);
  for (int f = 0; f < count; ++f) {
    const EliminationPlan::Front& front = plan_.fronts_[f];
    const bool leaf = front.child_begin == front.child_end;
    subtree_begin[f] = leaf ? f : subtree_begin[plan_.children_[front.child_begin]];
    if (front.parent >= 0) subtree_cost[front.parent] += subtree_cost[f];
  }
  const double limit = std::max(TotalCost(nodes_) / kTasks, kMinTaskCycles);
  std::vector<std::pair<double, EliminationPlan::Task>> tasks;
  for (int f = 0; f < count; ++f) {
    if (subtree_cost[f] > limit) {
      plan_.top_fronts_.push_back(f);
      continue;
    }
    const int parent = plan_.fronts_[f].parent;
    if (parent >= 0 && subtree_cost[parent] <= limit) continue;
    const int begin = subtree_begin[f];
    if (!tasks.empty() && tasks.back().second.front_end == begin &&
        tasks.back().first + subtree_cost[f] <= limit) {
      tasks.back().first += subtree_cost[f];
      tasks.back().second.front_end = f + 1;
    } else {
      tasks.push_back({subtree_cost[f], {begin, f + 1}});
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [cost, task] : tasks) plan_.tasks_.push_back(task);
}

void EliminationPlanBuilder::PlaceFactor() {
  for (EliminationPlan::Front& front : plan_.fronts_) {
    front.factor_start_double = plan_.factor_storage_double_;
    front.factor_start_float = plan_.factor_storage_float_;
    plan_.factor_storage_double_ += FrontLayout<double>(front.pivots, front.updates).entries();
    plan_.factor_storage_float_ += FrontLayout<float>(front.pivots, front.updates).entries();
  }
}

// A front's update shares storage with updates that have been added to their parents by then. Of
// tasks that run at the same time none knows how far the others are, so each has its own.
void EliminationPlanBuilder::PlaceUpdates() {
  std::vector<int> fronts;
  const auto place = [&](int64_t EliminationPlan::Front::*start, int64_t* storage) {
    StoragePlanner planner;
    std::vector<bool> placed(plan_.fronts_.size(), false);
    for (const int f : fronts) {
      EliminationPlan::Front& front = plan_.fronts_[f];
      front.*start = *storage + planner.Allocate(UpdateEntries(front.updates));
      placed[f] = true;
      for (int c = front.child_begin; c < front.child_end; ++c) {
        const EliminationPlan::Front& child = plan_.fronts_[plan_.children_[c]];
        if (!placed[plan_.children_[c]]) continue;
        planner.Free(child.*start - *storage, UpdateEntries(child.updates));
      }
    }
    *storage += planner.peak();
  };
  fronts.resize(plan_.fronts_.size());
  std::iota(fronts.begin(), fronts.end(), 0);
  place(&EliminationPlan::Front::update_start_serial, &plan_.update_storage_serial_);
  for (const EliminationPlan::Task& task : plan_.tasks_) {
    fronts.resize(task.front_end - task.front_begin);
    std::iota(fronts.begin(), fronts.end(), task.front_begin);
    place(&EliminationPlan::Front::update_start_concurrent, &plan_.update_storage_concurrent_);
  }
  fronts = plan_.top_fronts_;
  place(&EliminationPlan::Front::update_start_concurrent, &plan_.update_storage_concurrent_);
  for (EliminationPlan::Front& front : plan_.fronts_) {
    front.vector_start = plan_.vector_storage_;
    plan_.vector_storage_ += front.updates;
  }
}

EliminationPlan EliminationPlan::Make(const BlockPattern& pattern, Ordering ordering) {
  return EliminationPlanBuilder(pattern, ordering).Build();
}

}  // namespace sap
