#include "solver/island_schedule.h"

#include <algorithm>
#include <numeric>

#include "solver/newton/hessian.h"
#include "solver/newton/single_body_islands.h"

namespace sap {

namespace {

// A task below this costs more to start than it gains [flop].
constexpr double kTaskFlops = 5e4;

// Islands with more work than this per iteration are worth several threads [flop].
constexpr double kLargeIslandFlops = 1e6;

// Trees whose part of all arrays is about 1 MiB, as much as the second-level cache of a core has:
// 80 to 160 take the same time, 640 gain nothing. Smaller blocks than the least leave too many
// lanes of single bodies unfilled.
constexpr int kMostTreesOfBlock = 160;
constexpr int kLeastTreesOfBlock = 40;
// Work for 16 threads that end together.
constexpr int kBlocks = 64;

constexpr double kFlopsPerContact = 1000;
constexpr double kFlopsPerRow = 200;

double FlopsOf(const ConstraintGraph& graph, const IslandRange& range,
               const EliminationPlan* plan) {
  const double constraints = kFlopsPerContact * range.num_contacts + kFlopsPerRow * range.num_rows;
  if (plan != nullptr) return constraints + plan->mean_flops();
  if (!IsDense(graph, range)) return constraints;
  const double n = range.num_velocities();
  return constraints + n * n * n / 3;
}

}  // namespace

void IslandSchedule::Build(const ConstraintGraph& graph, const IslandPlans& plans) {
  const int count = graph.islands().count();
  flops_.resize(count);
  for (int island = 0; island < count; ++island) {
    flops_[island] = FlopsOf(graph, graph.island_ranges()[island], plans.plan(island));
  }
  island_.clear();
  const auto append = [&](bool large) {
    for (int island = 0; island < count; ++island) {
      if ((flops_[island] >= kLargeIslandFlops) == large) island_.push_back(island);
    }
  };
  append(/*large=*/true);
  num_large_ = static_cast<int>(island_.size());
  std::sort(island_.begin(), island_.end(), [&](int a, int b) { return Precedes(a, b); });
  append(/*large=*/false);
  task_start_.resize(num_large_ + 1);
  std::iota(task_start_.begin(), task_start_.end(), 0);
  const int trees = graph.num_slots() / kBlocks;
  if (trees >= kLeastTreesOfBlock) {
    AddBlocks(graph, num_large_, std::min(trees, kMostTreesOfBlock));
  } else {
    AddTasksBySize(num_large_);
  }
  constraints_after_.resize(count);
  cubed_dofs_from_.resize(count);
  int64_t constraints = 0;
  double cubed_dofs = 0;
  for (int i = count - 1; i >= 0; --i) {
    const IslandRange& range = graph.island_ranges()[island_[i]];
    constraints_after_[i] = constraints;
    constraints += range.num_constraints();
    cubed_dofs += range.cubed_dofs;
    cubed_dofs_from_[i] = cubed_dofs;
  }
}

bool IslandSchedule::Precedes(int a, int b) const {
  return flops_[a] != flops_[b] ? flops_[a] > flops_[b] : a < b;
}

// Makes tasks of the islands from this position on.
void IslandSchedule::AddTasksBySize(int begin) {
  const int count = static_cast<int>(island_.size());
  std::sort(island_.begin() + begin, island_.end(), [&](int a, int b) { return Precedes(a, b); });
  double task_flops = 0;
  for (int i = begin; i < count; ++i) {
    task_flops += flops_[island_[i]];
    const int islands = i + 1 - task_start_.back();
    // Islands of one body fill their vectors.
    const bool fills = islands < kMaxSingleBodyIslands || islands % kMaxSingleBodyIslands == 0;
    if ((task_flops < kTaskFlops || !fills) && i + 1 < count) continue;
    task_start_.push_back(i + 1);
    task_flops = 0;
  }
}

// Makes tasks of the islands from this position on, which ascend: each of `trees` trees or a few
// more.
void IslandSchedule::AddBlocks(const ConstraintGraph& graph, int begin, int trees) {
  const int count = static_cast<int>(island_.size());
  int in_block = 0;
  for (int i = begin; i < count; ++i) {
    in_block += graph.island_ranges()[island_[i]].num_trees();
    if (in_block < trees && i + 1 < count) continue;
    std::sort(island_.begin() + task_start_.back(), island_.begin() + i + 1,
              [&](int a, int b) { return Precedes(a, b); });
    task_start_.push_back(i + 1);
    in_block = 0;
  }
}

}  // namespace sap
