#include "solver/parallel/task_order.h"

#include <algorithm>

#include "solver/parallel/task_arena.h"

namespace sap {

// Not in task_arena.cc, which ThreadSanitizer does not see into.
void TaskArena::RunTasks(const TaskOrder& order, int* state, void (*body)(void* context, int index),
                         void* context) {
  std::ranges::copy(order.num_before, state);
  ParallelFor(static_cast<int>(order.first.size()), [&](int i) {
    RunFromTask(order, order.first[i], state, [&](int task) { body(context, task); });
  });
}

}  // namespace sap
