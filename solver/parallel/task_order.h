// Which tasks wait for which: for TaskArena::ParallelForTasks.
#pragma once

#include <atomic>
#include <span>
#include <vector>

namespace sap {

struct TaskOrder {
  std::vector<int> first;        // those that wait for none, in the order in which they are begun
  std::vector<int> num_before;   // [n] how many tasks each waits for
  std::vector<int> after_start;  // [n + 1]
  std::vector<int> after;        // after[after_start[i] .. after_start[i + 1]) wait for task i

  int size() const { return static_cast<int>(num_before.size()); }
  std::span<const int> waiting_for(int task) const {
    return std::span(after).subspan(after_start[task], after_start[task + 1] - after_start[task]);
  }
};

// Calls body(i) for a task that is ready, and then for each task that waited for none but those
// that are done. Many threads may do so at the same time, from different tasks. `state` is
// `num_before` at first.
template <typename Body>
void RunFromTask(const TaskOrder& order, int task, int* state, Body&& body) {
  // The state of a task is how many it waits for. Once it waits for none, it is in the list of one
  // thread, and its state is the next in that list.
  constexpr int kEnd = -1;
  state[task] = kEnd;
  while (task != kEnd) {
    int ready = state[task];
    body(task);
    for (const int next : order.waiting_for(task)) {
      if (std::atomic_ref(state[next]).fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
      state[next] = ready;
      ready = next;
    }
    task = ready;
  }
}

}  // namespace sap
