// Independent problems solved concurrently: which is solved when, and when all are done.
//
// Largest first, so that none that takes long is started last. In the queue each problem is a task
// of its own, and a batch has at most one task per thread there: the next one is queued when one is
// done, behind what its client has queued meanwhile, so a large batch holds nobody up for longer
// than a problem takes.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "sap/v1/problem.pb.h"
#include "server/scheduling/work_queue.h"
#include "solver/parallel/task_arena.h"

namespace sap {

class Batch {
 public:
  using Problems = google::protobuf::RepeatedPtrField<v1::ContactProblem>;
  // Solves problem i and deals with its outcome. Called by several threads at once.
  using SolveProblem = std::function<void(int i, Turn turn)>;

  // Where and for whom a batch is queued.
  struct Place {
    WorkQueue* queue;
    int num_threads;
    ClientAccount* account;
    Priority priority;
  };

  // Returns when all are solved, by the calling thread and the arena.
  static void Run(const Problems& problems, TaskArena* arena, const SolveProblem& solve);

  // Returns at once; `done` is called after the last one, on a thread of the queue, or right away
  // if there are none. The account must live until then.
  static void Start(const Problems& problems, const Place& place, SolveProblem solve,
                    std::function<void()> done);

 private:
  // One of the tasks that a batch has in the queue at a time.
  struct Worker {
    Batch* batch;
    int index;  // into order_
    QueuedTask task;
  };

  Batch(const Problems& problems, const Place& place, SolveProblem solve,
        std::function<void()> done);

  void Enqueue(Worker* worker);
  void Work(Worker* worker, Turn turn);

  const Problems& problems_;
  const Place place_;
  const SolveProblem solve_;
  const std::function<void()> done_;
  const std::vector<int> order_;
  std::vector<Worker> workers_;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> unsolved_;
};

}  // namespace sap
