// The loops of a solve as a graph of tasks with their times, and how long any number of threads
// would take for them.
//
// A task is one index of a loop. It runs for some time, opens a loop and waits for it, runs on. The
// first task is the whole solve. Tasks of a loop may wait for others of it (solver/parallel/
// task_order.h): the thread that has done the last of these goes on with the one that waited.
#pragma once

#include <vector>

namespace sap::bench {

struct TaskGraph {
  // `before` the loop the task runs by itself.
  struct OpenedLoop {
    double before_s;
    int loop;
  };
  struct Task {
    std::vector<OpenedLoop> loops;
    double after_s{0};        // the last of its loops
    std::vector<int> next{};  // tasks that wait for it
    int num_before{0};        // tasks that it waits for
  };
  struct Loop {
    // In the order in which they are claimed; then those that wait for others.
    std::vector<int> tasks;
    const void* body{nullptr};  // the function that it calls, the name of the loop
  };

  std::vector<Task> tasks;
  std::vector<Loop> loops;
};

// The lesser time of each task of two recordings of one solve, which have the same tasks: what else
// the machine did while it was recorded is left out.
void KeepLeastTimes(const TaskGraph& other, TaskGraph* graph);

// All times together: what one thread takes.
double Work(const TaskGraph& graph);

// The longest chain of times that wait for one another: what threads without number would take.
double CriticalPath(const TaskGraph& graph);

// Costs of sharing a loop.
struct SharingCosts {
  double loop_s{0};   // opening a loop, and joining it
  double stretch{1};  // of short tasks of loops: they read lines that other cores have written
  double short_s{0};  // tasks that take less alone are short

  // Fitted to what was measured on 4 and 16 cores (solver/MEASURED.md, "Sixteen cores"): those of
  // the largest number of threads that is not above this one.
  static SharingCosts Of(int threads);
};

// Predicted time of `threads` threads that claim tasks in ascending order, nearly as
// WorkSharingLoops deals them out: a thread stays with a loop while it has tasks left. The one that
// opened it then waits for the others and helps with loops opened within it; any other goes to the
// open loop that was opened first. One thread has no costs of sharing but those of loops. That
// threads share the bandwidth of memory, and that helpers may have gone to sleep, is left out.
double ReplayedTime(const TaskGraph& graph, int threads, const SharingCosts& costs);

// Share of the loops with one body in a replayed time. The times of all parts add up to it.
struct PartOfTime {
  const void* body{nullptr};  // null after the last loop of the solve
  int loops{0};
  double serial_s{0};  // the task that opens such a loop, by itself before it
  double loop_s{0};    // from opening to closing, without the parts of loops opened within
  double work_s{0};    // of its tasks, without loops opened within
};

// The parts of ReplayedTime, the longest first. Of the tasks of a loop the one that ended last is
// looked into for the loops that it has opened; until it was claimed the time is that of the loop.
std::vector<PartOfTime> PartsOfReplayedTime(const TaskGraph& graph, int threads,
                                            const SharingCosts& costs);

}  // namespace sap::bench
