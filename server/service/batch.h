// Schedules the independent problems of a batch and detects completion.
//
// Largest problems first, so that no long solve starts last. Each problem is a separate task of the
// queue, and a batch has at most one task per arena thread there: a finished task queues
// the next one behind what its client has queued meanwhile. A large batch therefore delays other
// calls by at most one problem per thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/scheduling/fair_queue.h"

namespace sap {

class Batch {
 public:
  struct Problem {
    int64_t bytes;        // of its message, by which problems are ordered: known without decoding
    int64_t solve_bytes;  // what its solve takes
    double work_s;        // predicted solve time on one core
  };
  using Problems = std::vector<Problem>;
  // Solves problem i and delivers its outcome. Returns the part of its predicted work that had to
  // be done: less than 1 where islands were copied from other problems. Called concurrently.
  using SolveProblem = std::function<double(int i, Dispatch dispatch)>;

  // Queue and accounting of a batch.
  struct QueueTarget {
    FairQueue* queue;
    int num_threads;
    ClientAccount* account;
    Priority priority;
    // Receives predicted work that need not be done. Called concurrently.
    std::function<void(double work_s)> release_work = [](double) {};
  };

  // Returns at once. `done` is called after the last problem, on a thread of the queue, or
  // immediately if the batch is empty. The account must live until then.
  static void Start(Problems problems, const QueueTarget& target, SolveProblem solve,
                    std::function<void()> done);

 private:
  // One of the batch's tasks in the queue.
  struct Worker {
    Batch* batch;
    int index;  // into order_
    QueuedTask task;
  };

  Batch(Problems problems, const QueueTarget& target, SolveProblem solve,
        std::function<void()> done);

  void Enqueue(Worker* worker);
  void Work(Worker* worker, Dispatch dispatch);

  const Problems problems_;
  const QueueTarget target_;
  const SolveProblem solve_;
  const std::function<void()> done_;
  const std::vector<int> order_;
  std::vector<Worker> workers_;
  std::atomic<size_t> next_{0};
  // The part of its work that the last problem took: what is expected of the next one, so that
  // predictions of this client are compared with the work that is done.
  std::atomic<double> share_{1};
  std::atomic<size_t> unsolved_;
};

}  // namespace sap
