#include "solver/run/island_schedule.h"

#include <algorithm>
#include <numeric>

#include "solver/newton/hessian.h"
#include "solver/newton/single_body_islands.h"

namespace sap {

namespace {

// A task below this costs more to start than it gains [flop].
constexpr double kTaskFlops = 5e4;

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
  island_.resize(count);
  std::iota(island_.begin(), island_.end(), 0);
  std::ranges::sort(island_, [this](int a, int b) {
    return flops_[a] != flops_[b] ? flops_[a] > flops_[b] : a < b;
  });
  num_large_ = 0;
  while (num_large_ < count && IsLarge(island_[num_large_])) ++num_large_;
  task_start_.resize(num_large_ + 1);
  std::iota(task_start_.begin(), task_start_.end(), 0);
  AddTasks(num_large_);
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

// Makes tasks of the islands from this position on.
void IslandSchedule::AddTasks(int begin) {
  const int count = static_cast<int>(island_.size());
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

}  // namespace sap
