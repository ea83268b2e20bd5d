// In which order the islands of a problem are solved, and what is left to do after each.
//
// The largest island comes first: one that is started late leaves the other threads idle. Islands
// with work for several threads have tasks of their own; the others share tasks, so that a task is
// worth its overhead. A function of the graph and its plans alone.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/constraint_graph.h"
#include "solver/run/island_plans.h"

namespace sap {

class IslandSchedule {
 public:
  // Islands with more work than this per iteration are solved by several threads [flop]: a fall of
  // 160 bodies has 2e6, and loses where the caches of cores are far apart; one of 500 has 1e7.
  static constexpr double kLargeFlops = 5e6;

  void Build(const ConstraintGraph& graph, const IslandPlans& plans);

  // Task t solves the islands at positions [task_begin(t), task_end(t)) of the schedule.
  int num_tasks() const { return static_cast<int>(task_start_.size()) - 1; }
  int task_begin(int task) const { return task_start_[task]; }
  int task_end(int task) const { return task_start_[task + 1]; }
  int island(int position) const { return island_[position]; }
  // The first so many islands of the schedule have work for several threads.
  int num_large() const { return num_large_; }
  bool IsLarge(int island) const { return flops_[island] >= kLargeFlops; }

  // Islands later in the schedule, and their constraints.
  int islands_after(int position) const { return static_cast<int>(island_.size()) - 1 - position; }
  int64_t constraints_after(int position) const { return constraints_after_[position]; }
  // Sum of the cubed dofs of the trees of this island and of those later in the schedule.
  double cubed_dofs_from(int position) const { return cubed_dofs_from_[position]; }

  // Predicted work of one Newton iteration on an island [flop].
  double flops(int island) const { return flops_[island]; }
  size_t storage_bytes() const {
    return StorageBytes(flops_, island_, task_start_, constraints_after_, cubed_dofs_from_);
  }

 private:
  void AddTasks(int begin);

  int num_large_{0};
  std::vector<double> flops_;               // per island
  std::vector<int> island_;                 // by position
  std::vector<int> task_start_{0};          // positions
  std::vector<int64_t> constraints_after_;  // by position
  std::vector<double> cubed_dofs_from_;     // by position
};

}  // namespace sap
