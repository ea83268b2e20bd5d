#include "solver/cholesky/elimination_plan.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "solver/cholesky/elimination_tree.h"
#include "solver/cholesky/front_layout.h"
#include "solver/cholesky/minimum_degree.h"
#include "solver/cholesky/nested_dissection.h"
#include "solver/cholesky/storage_planner.h"
#include "solver/cholesky/supernodes.h"
#include "solver/cholesky/varying_last.h"

namespace sap {
namespace {

std::optional<Supernodes> MakeSupernodes(const BlockGraph& graph,
                                         std::optional<std::vector<int>> order,
                                         const StopToken& stop) {
  if (!order) return std::nullopt;
  const EliminationTree tree = EliminationTree::Make(graph, *std::move(order));
  if (stop.Requested()) return std::nullopt;
  return Supernodes::Make(graph, tree);
}

double TotalCost(const Supernodes& nodes) {
  return std::accumulate(nodes.cost.begin(), nodes.cost.end(), 0.0);
}

// Per factorization, as EliminationPlan::mean_flops().
double MeanCost(const Supernodes& nodes) {
  double varying = 0;
  for (int s = 0; s < nodes.size(); ++s) {
    if (nodes.varies[s] != 0) varying += nodes.cost[s];
  }
  return varying + (TotalCost(nodes) - varying) / EliminationPlan::kExpectedFactorizations;
}

struct OrderedBlocks {
  Supernodes nodes;
  Ordering ordering;
};

// Whether both orders are made at the same time, by two threads of the arena: minimum degree of so
// large a graph takes a sixth of the time of a dissection, which then begins at once. It is made in
// vain where the graph turns out to have little fill: layers of bricks that touch few others, and
// falling piles, with 4.0 to 4.3 neighbours of a block. Piles at rest have 4.9 to 5.6.
bool MakesBoth(const BlockGraph& graph, Ordering ordering, const TaskArena* arena) {
  constexpr int kMinBlocks = 600;
  constexpr double kMinNeighbors = 4.7;
  return ordering == Ordering::kAuto && arena != nullptr && arena->num_threads() > 1 &&
         graph.num_blocks() >= kMinBlocks &&
         static_cast<double>(graph.neighbor.size()) >= kMinNeighbors * graph.num_blocks();
}

// Whether the order of minimum degree is taken without a look at another. Nested dissection takes
// about 6000 cycles per block. In piles of spheres it saves nothing up to about 300 blocks; at
// 1000, where a factorization takes more than 10,000 cycles per block, it saves a fifth of every
// factorization or more. Chains and trees cost less than that at any size.
bool Suffices(const Supernodes& minimum_degree, const BlockGraph& graph) {
  constexpr int kMinBlocks = 200;
  constexpr double kMinCyclesPerBlock = 10000.0;
  return graph.num_blocks() <= kMinBlocks ||
         TotalCost(minimum_degree) <= kMinCyclesPerBlock * graph.num_blocks();
}

// The supernodes of the better ordering. `minimum_degree` and `nested_dissection` return orders.
template <typename MinimumDegree, typename NestedDissection>
std::optional<OrderedBlocks> BetterOrder(const BlockGraph& graph, Ordering ordering,
                                         const StopToken& stop, TaskArena* arena,
                                         MinimumDegree&& minimum_degree,
                                         NestedDissection&& nested_dissection) {
  std::optional<Supernodes> nodes, dissected;
  const auto eliminate = [&] { nodes = MakeSupernodes(graph, minimum_degree(), stop); };
  const auto dissect = [&] { dissected = MakeSupernodes(graph, nested_dissection(), stop); };
  const bool both = MakesBoth(graph, ordering, arena);
  if (both) {
    arena->ParallelFor(2, [&](int i) { i == 0 ? dissect() : eliminate(); });
  } else if (ordering != Ordering::kNestedDissection) {
    eliminate();
  }
  if (ordering != Ordering::kNestedDissection) {
    if (!nodes) return std::nullopt;
    if (ordering == Ordering::kMinimumDegree || Suffices(*nodes, graph)) {
      return OrderedBlocks{*std::move(nodes), Ordering::kMinimumDegree};
    }
  }
  if (!both) dissect();
  if (!dissected) return std::nullopt;
  if (nodes && MeanCost(*nodes) <= MeanCost(*dissected)) {
    return OrderedBlocks{*std::move(nodes), Ordering::kMinimumDegree};
  }
  return OrderedBlocks{*std::move(dissected), Ordering::kNestedDissection};
}

// Where some blocks vary, the better of two orders: of all blocks alike, or of those that vary
// last.
std::optional<OrderedBlocks> OrderBlocks(const BlockGraph& graph, Ordering ordering,
                                         const StopToken& stop, TaskArena* arena) {
  std::optional<OrderedBlocks> alike = BetterOrder(
      graph, ordering, stop, arena, [&] { return MinimumDegreeOrder(graph, stop); },
      [&] { return NestedDissectionOrder(graph, stop, arena); });
  const bool some_vary = std::ranges::find(graph.varies, 1) != graph.varies.end();
  if (!alike || !some_vary || std::ranges::find(graph.varies, 0) == graph.varies.end())
    return alike;
  const VaryingLast last(graph, stop);
  std::optional<OrderedBlocks> varying_last = BetterOrder(
      graph, ordering, stop, arena, [&] { return last.MinimumDegree(); },
      [&] { return last.NestedDissection(stop, arena); });
  if (!varying_last) return std::nullopt;
  const bool pays = MeanCost(varying_last->nodes) < MeanCost(alike->nodes);
  return pays ? std::move(varying_last) : std::move(alike);
}

}  // namespace

class EliminationPlanBuilder {
  using Schedule = EliminationPlan::Schedule;

 public:
  EliminationPlanBuilder(const BlockPattern& pattern, const StopToken& stop)
      : pattern_(pattern), stop_(stop), graph_(BlockGraph::FromPattern(pattern)) {}

  std::optional<EliminationPlan> Build(Ordering ordering, TaskArena* arena) {
    auto ordered = OrderBlocks(graph_, ordering, stop_, arena);
    if (!ordered) return std::nullopt;
    nodes_ = std::move(ordered->nodes);
    plan_.ordering_ = ordered->ordering;
    LocateValues();
    MakeFronts();
    SplitTasks();
    OrderTasks();
    if (!FindRows(arena)) return std::nullopt;
    PlaceFactor();
    PlaceUpdates();
    PlaceVectors();
    plan_.order_ = std::move(nodes_.order);
    return std::move(plan_);
  }

 private:
  void LocateValues();
  void MakeFronts();
  struct RowSearch;
  bool FindRows(TaskArena* arena);
  void CountMatrixBlocks();
  bool FindRows(const EliminationPlan::Task& task, RowSearch* search);
  void CollectRows(int f, RowSearch* search);
  void ListMatrixBlocks(int f, const std::vector<int>& local_row);
  void AddRuns(int child, int pivots, RowSearch* search);
  void AppendRuns(const RowSearch& search);
  void SplitTasks();
  void OrderTasks();
  void PlaceFactor();
  void PlaceUpdates();
  bool KeepsUpdate(int f) const;
  void AllocateUpdate(int f, Schedule schedule, StoragePlanner* planner);
  void FreeUpdatesOfChildren(int f, Schedule schedule, StoragePlanner* planner);
  void PlaceVectors();

  BlockPattern pattern_;
  const StopToken& stop_;
  BlockGraph graph_;
  Supernodes nodes_;
  EliminationPlan plan_;
  std::vector<int> position_;                 // [N] of each block in the order
  std::vector<std::vector<int>> front_rows_;  // positions of the blocks below the pivots
};

void EliminationPlanBuilder::LocateValues() {
  const int num_blocks = pattern_.num_blocks();
  plan_.diagonal_start_.reserve(num_blocks + 1);
  plan_.block_row_start_.reserve(num_blocks + 1);
  plan_.off_diagonal_start_.reserve(pattern_.num_edges() + 1);
  plan_.order_row_start_.reserve(num_blocks + 1);
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
  plan_.order_row_start_.assign(1, 0);
  for (int k = 0; k < num_blocks; ++k) {
    position_[nodes_.order[k]] = k;
    plan_.order_row_start_.push_back(plan_.order_row_start_.back() +
                                     graph_.weight[nodes_.order[k]]);
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
    front.pivot_begin = plan_.order_row_start_[nodes_.block_start[f]];
    front.parent = nodes_.parent[f];
    if (front.parent >= 0) {
      ++num_children[front.parent];
      depth[f] = depth[front.parent] + 1;
    }
    plan_.factor_entries_ += front.entries();
    front.varies = nodes_.varies[f] != 0;
    plan_.factor_flops_ += FrontFlops(front.pivots, front.updates);
    if (front.varies) plan_.varying_flops_ += FrontFlops(front.pivots, front.updates);
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

// Workspace to find rows in a range of fronts, and the runs that were found there.
struct EliminationPlanBuilder::RowSearch {
  std::vector<int> mark;       // [N] front that last collected the position
  std::vector<int> local_row;  // [N] by position, in the current front
  std::vector<EliminationPlan::RowRun> runs;
  std::vector<int> children;  // fronts whose runs these are

  explicit RowSearch(int num_blocks) : mark(num_blocks, -1), local_row(num_blocks) {}
};

// Blocks below the pivots of front f: neighbors of its blocks and rows of its children, those
// eliminated here left out.
void EliminationPlanBuilder::CollectRows(int f, RowSearch* search) {
  const EliminationPlan::Front& front = plan_.fronts_[f];
  const int end = nodes_.block_start[f + 1];
  std::vector<int>& rows = front_rows_[f];
  const auto add = [&](int k) {
    if (k < end || search->mark[k] == f) return;
    search->mark[k] = f;
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

// False if it was stopped. Subtrees are independent; the fronts above follow them.
bool EliminationPlanBuilder::FindRows(TaskArena* arena) {
  constexpr int kWorthSharing = 300;  // blocks, of which each takes a third of a microsecond
  front_rows_.resize(nodes_.size());
  CountMatrixBlocks();
  const std::span<const EliminationPlan::Task> subtrees = plan_.wave(0);
  const int num_subtrees = static_cast<int>(subtrees.size());
  std::vector<RowSearch> searches(num_subtrees, RowSearch(0));
  std::atomic<bool> complete{true};
  const auto find = [&](int i) {
    RowSearch search(graph_.num_blocks());
    if (!FindRows(subtrees[i], &search)) complete = false;
    search.mark = search.local_row = {};
    searches[i] = std::move(search);
  };
  if (arena != nullptr && graph_.num_blocks() >= kWorthSharing) {
    arena->ParallelFor(num_subtrees, find);
  } else {
    for (int i = 0; i < num_subtrees; ++i) find(i);
  }
  RowSearch above(graph_.num_blocks());
  for (const EliminationPlan::Task& front : std::span(plan_.tasks_).subspan(num_subtrees)) {
    if (!complete || !FindRows(front, &above)) return false;
  }
  for (const RowSearch& search : searches) AppendRuns(search);
  AppendRuns(above);
  return complete;
}

bool EliminationPlanBuilder::FindRows(const EliminationPlan::Task& task, RowSearch* search) {
  constexpr int kFrontsPerPoll = 16;
  std::vector<int>& local_row = search->local_row;
  for (int f = task.front_begin; f < task.front_end; ++f) {
    if (f % kFrontsPerPoll == 0 && stop_.Requested()) return false;
    CollectRows(f, search);
    int row = 0;
    for (int k = nodes_.block_start[f]; k < nodes_.block_start[f + 1]; ++k) {
      local_row[k] = row;
      row += graph_.weight[nodes_.order[k]];
    }
    for (const int k : front_rows_[f]) {
      local_row[k] = row;
      row += graph_.weight[nodes_.order[k]];
    }
    ListMatrixBlocks(f, local_row);
    const EliminationPlan::Front& front = plan_.fronts_[f];
    for (int c = front.child_begin; c < front.child_end; ++c) {
      AddRuns(plan_.children_[c], front.pivots, search);
      front_rows_[plan_.children_[c]] = {};
    }
  }
  return true;
}

// A front has the diagonal blocks of its pivots, and those that couple them with later pivots.
void EliminationPlanBuilder::CountMatrixBlocks() {
  int count = 0;
  for (int f = 0; f < nodes_.size(); ++f) {
    plan_.fronts_[f].entry_begin = count;
    for (int k = nodes_.block_start[f]; k < nodes_.block_start[f + 1]; ++k) {
      ++count;
      for (const int neighbor : graph_.neighbors(nodes_.order[k])) {
        if (position_[neighbor] >= k) ++count;
      }
    }
    plan_.fronts_[f].entry_end = count;
  }
  plan_.matrix_blocks_.resize(count);
}

void EliminationPlanBuilder::ListMatrixBlocks(int f, const std::vector<int>& local_row) {
  using Kind = EliminationPlan::MatrixBlock::Kind;
  EliminationPlan::MatrixBlock* next = plan_.matrix_blocks_.data() + plan_.fronts_[f].entry_begin;
  for (int k = nodes_.block_start[f]; k < nodes_.block_start[f + 1]; ++k) {
    const int block = nodes_.order[k];
    const int size = graph_.weight[block];
    const int column = local_row[k];
    *next++ = {plan_.diagonal_start_[block], size, size, column, column, Kind::kDiagonal};
    for (int m = graph_.start[block]; m < graph_.start[block + 1]; ++m) {
      const int neighbor = graph_.neighbor[m];
      if (position_[neighbor] < k) continue;
      const int e = graph_.edge[m];
      const bool as_stored = pattern_.edge_a[e] == neighbor;
      const int neighbor_size = graph_.weight[neighbor];
      *next++ = {plan_.off_diagonal_start_[e],
                 as_stored ? neighbor_size : size,
                 as_stored ? size : neighbor_size,
                 local_row[position_[neighbor]],
                 column,
                 as_stored ? Kind::kAsStored : Kind::kTransposed};
    }
  }
}

// Requires local_row of the parent, which has so many pivots.
void EliminationPlanBuilder::AddRuns(int child, int pivots, RowSearch* search) {
  std::vector<EliminationPlan::RowRun>& runs = search->runs;
  plan_.fronts_[child].run_begin = static_cast<int>(runs.size());
  int child_row = 0;
  for (const int k : front_rows_[child]) {
    const int length = graph_.weight[nodes_.order[k]];
    const int parent_row = search->local_row[k];
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
  search->children.push_back(child);
}

void EliminationPlanBuilder::AppendRuns(const RowSearch& search) {
  const int begin = static_cast<int>(plan_.runs_.size());
  for (const int child : search.children) {
    plan_.fronts_[child].run_begin += begin;
    plan_.fronts_[child].run_end += begin;
  }
  plan_.runs_.insert(plan_.runs_.end(), search.runs.begin(), search.runs.end());
}

// Subtrees small enough to balance many threads become tasks; small subtrees next to each other
// share one. Each front above them is a task of its own, in the wave of its level.
void EliminationPlanBuilder::SplitTasks() {
  constexpr double kTasks = 64.0;
  const int count = nodes_.size();
  std::vector<double> subtree_cost = nodes_.cost;
  std::vector<int> subtree_begin(count);
  std::vector<int> level(count, 0);
  std::vector<std::vector<EliminationPlan::Task>> waves(1);
  const double limit = std::max(TotalCost(nodes_) / kTasks, EliminationPlan::kMinSharedCycles);
  for (int f = 0; f < count; ++f) {
    const EliminationPlan::Front& front = plan_.fronts_[f];
    subtree_begin[f] = f;
    for (int c = front.child_end - 1; c >= front.child_begin; --c) {
      const int child = plan_.children_[c];
      subtree_begin[f] = subtree_begin[child];
      subtree_cost[f] += subtree_cost[child];
      level[f] = std::max(level[f], level[child] + 1);
    }
    if (subtree_cost[f] <= limit) {
      level[f] = 0;
      continue;
    }
    level[f] = std::max(level[f], 1);
    if (level[f] >= static_cast<int>(waves.size())) waves.resize(level[f] + 1);
    waves[level[f]].push_back({f, f + 1, nodes_.cost[f]});
    waves[level[f]].back().wave = level[f];
  }
  std::vector<double> path(count, 0.0);  // of the fronts above, from each up to the root
  for (int f = count - 1; f >= 0; --f) {
    const int parent = plan_.fronts_[f].parent;
    if (level[f] > 0) path[f] = nodes_.cost[f];
    if (parent >= 0) path[f] += path[parent];
  }
  for (int f = 0; f < count; ++f) {
    const int parent = plan_.fronts_[f].parent;
    if (level[f] > 0 || (parent >= 0 && level[parent] == 0)) continue;
    std::vector<EliminationPlan::Task>& tasks = waves[0];
    if (!tasks.empty() && tasks.back().front_end == subtree_begin[f] &&
        tasks.back().cost + subtree_cost[f] <= limit) {
      tasks.back().front_end = f + 1;
      tasks.back().cost += subtree_cost[f];
      tasks.back().path = std::max(tasks.back().path, path[f]);
    } else {
      tasks.push_back({subtree_begin[f], f + 1, subtree_cost[f], path[f]});
    }
  }
  for (std::vector<EliminationPlan::Task>& tasks : waves) {
    const bool above = tasks.empty() || tasks.front().wave > 0;
    for (EliminationPlan::Task& task : tasks) {
      task.path = above ? path[task.front_begin] : task.path + task.cost;
    }
    std::ranges::stable_sort(tasks, std::ranges::greater(),
                             above ? &EliminationPlan::Task::cost : &EliminationPlan::Task::path);
    plan_.tasks_.insert(plan_.tasks_.end(), tasks.begin(), tasks.end());
    plan_.wave_start_.push_back(static_cast<int>(plan_.tasks_.size()));
  }
  for (EliminationPlan::Task& task : plan_.tasks_) {
    for (int f = task.front_begin; f < task.front_end; ++f) {
      const EliminationPlan::Front& front = plan_.fronts_[f];
      task.largest_front = std::max(task.largest_front, front.pivots + front.updates);
      task.entries += front.entries();
    }
  }
}

// The task of a front waits for those of its children.
void EliminationPlanBuilder::OrderTasks() {
  const std::vector<EliminationPlan::Task>& tasks = plan_.tasks_;
  const int count = static_cast<int>(tasks.size());
  TaskOrder& order = plan_.task_order_;
  std::vector<int> task_of(nodes_.size());
  for (int t = 0; t < count; ++t) {
    for (int f = tasks[t].front_begin; f < tasks[t].front_end; ++f) task_of[f] = t;
  }
  order.num_before.assign(count, 0);
  order.after_start.assign(1, 0);
  for (int t = 0; t < count; ++t) {
    for (int f = tasks[t].front_begin; f < tasks[t].front_end; ++f) {
      const int parent = plan_.fronts_[f].parent;
      if (parent < tasks[t].front_end) continue;  // or -1
      order.after.push_back(task_of[parent]);
      ++order.num_before[task_of[parent]];
    }
    order.after_start.push_back(static_cast<int>(order.after.size()));
  }
  for (int t = 0; t < count; ++t) {
    if (order.num_before[t] == 0) order.first.push_back(t);
  }
  std::ranges::stable_sort(order.first, std::ranges::greater(),
                           [&](int t) { return tasks[t].path; });
}

void EliminationPlanBuilder::PlaceFactor() {
  for (EliminationPlan::Front& front : plan_.fronts_) {
    front.factor_start_double = plan_.factor_storage_double_;
    front.factor_start_float = plan_.factor_storage_float_;
    plan_.factor_storage_double_ += FrontLayout<double>(front.pivots, front.updates).entries();
    plan_.factor_storage_float_ += FrontLayout<float>(front.pivots, front.updates).entries();
  }
}

// Whether the update of a front is added to its parent again in later factorizations.
bool EliminationPlanBuilder::KeepsUpdate(int f) const {
  const int parent = plan_.fronts_[f].parent;
  return parent >= 0 && !plan_.fronts_[f].varies && plan_.fronts_[parent].varies;
}

// The update of a front reuses storage of updates that have been added to their parents before,
// unless they are kept.
void EliminationPlanBuilder::PlaceUpdates() {
  StoragePlanner serial;
  StoragePlanner concurrent;
  for (int f = 0; f < nodes_.size(); ++f) {
    if (!KeepsUpdate(f)) continue;
    const int64_t size = UpdateEntries(plan_.fronts_[f].updates);
    plan_.fronts_[f].update_start[EliminationPlan::kSerial] = serial.Allocate(size);
    plan_.fronts_[f].update_start[EliminationPlan::kConcurrent] = concurrent.Allocate(size);
  }
  for (int f = 0; f < nodes_.size(); ++f) {
    AllocateUpdate(f, EliminationPlan::kSerial, &serial);
    FreeUpdatesOfChildren(f, EliminationPlan::kSerial, &serial);
  }
  // A front is known to come after its children, and no more. So each subtree has its own piece,
  // and so has each front above: what those below it have freed would save 4 % at most.
  constexpr Schedule kConcurrent = EliminationPlan::kConcurrent;
  for (const EliminationPlan::Task& task : plan_.wave(0)) {
    StoragePlanner own;
    const int64_t base = concurrent.peak();
    for (int f = task.front_begin; f < task.front_end; ++f) {
      AllocateUpdate(f, kConcurrent, &own);
      FreeUpdatesOfChildren(f, kConcurrent, &own);
    }
    for (int f = task.front_begin; f < task.front_end; ++f) {
      if (!KeepsUpdate(f)) plan_.fronts_[f].update_start[kConcurrent] += base;
    }
    concurrent.Allocate(own.peak());
  }
  const size_t num_subtrees = plan_.wave(0).size();
  for (const EliminationPlan::Task& task : std::span(plan_.tasks_).subspan(num_subtrees)) {
    AllocateUpdate(task.front_begin, kConcurrent, &concurrent);
  }
  plan_.update_storage_[EliminationPlan::kSerial] = serial.peak();
  plan_.update_storage_[kConcurrent] = concurrent.peak();
}

void EliminationPlanBuilder::AllocateUpdate(int f, Schedule schedule, StoragePlanner* planner) {
  if (KeepsUpdate(f)) return;
  EliminationPlan::Front& front = plan_.fronts_[f];
  front.update_start[schedule] = planner->Allocate(UpdateEntries(front.updates));
}

void EliminationPlanBuilder::FreeUpdatesOfChildren(int f, Schedule schedule,
                                                   StoragePlanner* planner) {
  const EliminationPlan::Front& front = plan_.fronts_[f];
  for (int c = front.child_begin; c < front.child_end; ++c) {
    if (KeepsUpdate(plan_.children_[c])) continue;
    const EliminationPlan::Front& child = plan_.fronts_[plan_.children_[c]];
    planner->Free(child.update_start[schedule], UpdateEntries(child.updates));
  }
}

void EliminationPlanBuilder::PlaceVectors() {
  for (EliminationPlan::Front& front : plan_.fronts_) {
    front.vector_start = plan_.vector_storage_;
    plan_.vector_storage_ += front.updates;
  }
}

size_t EliminationPlan::size_bytes() const {
  const auto bytes = [](const auto&... arrays) {
    return ((arrays.capacity() * sizeof(arrays[0])) + ...);
  };
  return sizeof *this + bytes(fronts_, children_, matrix_blocks_, runs_, tasks_, task_order_.first,
                              task_order_.num_before, task_order_.after_start, task_order_.after,
                              wave_start_, order_, order_row_start_, block_row_start_,
                              diagonal_start_, off_diagonal_start_);
}

EliminationPlan EliminationPlan::Make(const BlockPattern& pattern, Ordering ordering) {
  return *Make(pattern, ordering, StopToken(), nullptr);
}

std::optional<EliminationPlan> EliminationPlan::Make(const BlockPattern& pattern, Ordering ordering,
                                                     const StopToken& stop, TaskArena* arena) {
  return EliminationPlanBuilder(pattern, stop).Build(ordering, arena);
}

}  // namespace sap
