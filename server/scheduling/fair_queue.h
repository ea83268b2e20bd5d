// Fair queue of tasks in front of the task arena: the threads that run what fair_order.h says.
//
// At most as many tasks run at once as the arena has threads, and one more on a reserved thread.
//
// Push rejects a task whose predicted wait exceeds the limit. A task that has waited longer than
// the limit in spite of the prediction is expired when it is dispatched.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/scheduling/client_account.h"
#include "server/scheduling/fair_order.h"
#include "server/scheduling/inline_shares.h"
#include "server/service_error.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// Thread-safe. Push and dispatch allocate no memory, except in the arena.
class FairQueue {
 public:
  using Clock = QueuedTask::Clock;

  // The arena must outlive the queue. The nice value applies to the arena threads that run tasks,
  // so that the reserved thread is scheduled first when processors are scarce. `now` is the clock,
  // and `held` the time without a start after which long solves hold the arena; tests replace
  // them.
  FairQueue(TaskArena* arena, double timeout_s, int nice = 0,
            Clock::time_point (*now)() = &Clock::now, Clock::duration held = kHeld)
      : arena_(arena),
        timeout_s_(timeout_s),
        nice_(nice),
        now_(now),
        held_(held),
        order_(arena->num_threads(), held) {}
  // Requires an empty queue. Waits for worker threads that are about to return.
  ~FairQueue();

  // A client that may not use high priority is served as normal, here and in the checks below.

  // Queues the task. RESOURCE_EXHAUSTED if its predicted wait exceeds the limit; then it does not
  // run. A preadmitted task is never rejected.
  ServiceStatus Push(QueuedTask* task);

  // RESOURCE_EXHAUSTED if the predicted wait of another task of the client exceeds the limit.
  ServiceStatus CheckWait(const ClientAccount& account, Priority asked) const;

  // Predicted work of a call whose message has not been read yet: the client's recent mean per
  // task.
  struct Reservation {
    Priority priority{Priority::kNormal};
    double work_s{0};
  };
  // Checks as CheckWait does, then counts the reserved work in later predictions until it is
  // released.
  tl::expected<Reservation, ServiceError> Reserve(ClientAccount* account, Priority asked);
  void ReleaseReservation(ClientAccount* account, const Reservation& reservation);

  // Whether the client's next small problem may be solved on the thread that received it; otherwise
  // it has to be pushed, because the client has taken more than its share of these threads.
  // Lock-free.
  bool MayRunInline(const ClientAccount& account) const {
    return !inline_shares_.Exceeded(account, order_.queued_flows(), now_());
  }
  // Adds time that a receiving thread spent on a problem of the client to what the client has had.
  // Lock-free.
  void ChargeInline(ClientAccount* account, Clock::duration time) {
    inline_shares_.Add(account, time, now_());
  }

  // The error that an expired task is answered with.
  ServiceError Expired() const;

  int queued() const;
  // Whether at least kBackloggedTasksPerThread tasks per arena thread are queued. Lock-free.
  bool backlogged() const {
    return num_waiting_.load(std::memory_order_relaxed) >=
           kBackloggedTasksPerThread * arena_->num_threads();
  }
  int running() const;

 private:
  // Longer than most solves take, and short compared with the limit of the queue.
  static constexpr std::chrono::milliseconds kHeld{50};
  static constexpr int kBackloggedTasksPerThread = 4;

  ServiceStatus CheckWaitLocked(const ClientAccount& account, Priority priority,
                                double task_s) const;
  void StartWorker();
  void WakeReservedThread();
  void RunOnArena();
  void RunOnReservedThread();
  void Run(QueuedTask* queued, Dispatch dispatch, std::unique_lock<std::mutex>* lock);

  TaskArena* const arena_;
  const double timeout_s_;
  const int nice_;
  Clock::time_point (*const now_)();
  const Clock::duration held_;

  std::atomic<int> num_waiting_{0};  // queued tasks
  InlineShares inline_shares_;

  mutable std::mutex mutex_;
  FairOrder order_;  // guarded by it, except for queued_flows

  std::condition_variable workers_ended_;  // notified when the last one has
  std::condition_variable reserved_wake_;
  bool reserved_asleep_{true};  // until it is woken
  bool closing_{false};
  std::thread reserved_thread_;  // started with the first task for it
};

}  // namespace sap
