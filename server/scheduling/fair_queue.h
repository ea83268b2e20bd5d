// Fair queue of tasks in front of the task arena.
//
//   high priority    client A [task task]    client B [task]      9 of 10 parts of the time
//   normal priority  client A [task]  client C [task task task]   1 of 10, or what is left
//
// Start-time fair queuing (Goyal, Vin, Cheng 1996): a client's virtual time is the time that its
// tasks have taken, and the client with the earliest one is next. A task is charged its expected
// time when it starts and the measured one when it ends, so that a client pays for problems that
// take longer than predicted. A client that was idle continues at the virtual time of the others:
// it has saved up nothing, and owes nothing for time in which nobody waited. A client that sends
// much work therefore delays its own tasks, not those of others.
//
// At most as many tasks run at once as the arena has threads. A high-priority task does not wait
// for running normal ones: if all arena threads run normal tasks, a reserved thread runs it. The
// reserved thread also runs tasks of clients that have none running, while long solves of others
// hold all arena threads.
//
// Push rejects a task whose predicted wait exceeds the limit. A task that has waited longer than
// the limit in spite of the prediction is expired when it is dispatched.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "server/scheduling/client_account.h"
#include "server/scheduling/inline_shares.h"
#include "server/service_error.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// How a task leaves the queue.
enum class Dispatch : uint8_t {
  kArena,           // on an arena thread
  kReservedThread,  // on the reserved thread, from which the arena must not be used
  kExpired,         // waited longer than the limit; only the error is to be sent
};

// A task in the queue. The caller owns it and keeps it alive until `run` is called.
struct QueuedTask {
  using Clock = std::chrono::steady_clock;
  void (*run)(void* context, Dispatch dispatch){nullptr};
  void* context{nullptr};
  ClientAccount* account{nullptr};
  Priority priority{Priority::kNormal};
  double work_s{0};         // predicted solve time on one core
  bool preadmitted{false};  // exempt from the queue limits and from expiry
  Clock::time_point queued;
  // For the queue.
  double expected_s{0};   // predicted time, corrected by the client's earlier tasks
  bool contended{false};  // started while tasks of both priorities waited
  QueuedTask* next{nullptr};
};

// Thread-safe. Push and dispatch allocate no memory, except in the arena.
class FairQueue {
 public:
  using Clock = QueuedTask::Clock;

  // The arena must outlive the queue. The nice value applies to the arena threads that run tasks,
  // so that the reserved thread is scheduled first when processors are scarce. `now` is the clock,
  // and `held` the time without a dispatch after which long solves hold the arena; tests replace
  // them.
  FairQueue(TaskArena* arena, double timeout_s, int nice = 0,
            Clock::time_point (*now)() = &Clock::now, Clock::duration held = kHeld)
      : arena_(arena), timeout_s_(timeout_s), nice_(nice), now_(now), held_(held) {}
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
    return !inline_shares_.Exceeded(account, queued_flows_.load(std::memory_order_relaxed), now_());
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
  using Flow = ClientAccount::Flow;

  // Ring of the clients that have queued tasks in one priority class.
  struct Round {
    Flow* last{nullptr};  // last->next is the next client to serve
    int flows{0};
    int tasks{0};    // queued
    int running{0};  // tasks that have started and not ended
    double work_s{0};
    double virtual_s{0};   // virtual time of the client served last
    double latest_s{0};    // latest virtual time of any client
    int reserved{0};       // calls with a reservation
    double reserved_s{0};  // sum of the reserved work
  };

  ServiceStatus CheckWaitLocked(const ClientAccount& account, Priority priority,
                                double task_s) const;
  double PredictedWait(const ClientAccount& account, Priority priority, double task_s) const;
  double ExpectedTime(const QueuedTask& task) const;
  void Append(QueuedTask* task);
  QueuedTask* PopNext();
  QueuedTask* PopForReservedThread();
  bool IsHeld() const;
  QueuedTask* Pop(Round* round, Flow* before);
  template <typename Accept>
  static Flow* BeforeEarliest(const Round& round, Accept&& accept);
  static Flow* BeforeEarliest(const Round& round);
  void StartWorker();
  void WakeReservedThread();
  void RunOnArena();
  void RunOnReservedThread();
  void Run(QueuedTask* task, Dispatch dispatch, std::unique_lock<std::mutex>* lock);
  void CountQueuedFlow(ClientAccount* account, int change);
  void Charge(ClientAccount* account, Priority priority, double seconds, bool contended);
  void UpdateScale(ClientAccount* account, double predicted_s, double measured_s);

  TaskArena* const arena_;
  const double timeout_s_;
  const int nice_;
  Clock::time_point (*const now_)();
  const Clock::duration held_;

  std::atomic<int> num_waiting_{0};   // queued tasks
  std::atomic<int> queued_flows_{0};  // clients with queued tasks, in each priority
  InlineShares inline_shares_;

  mutable std::mutex mutex_;
  std::array<Round, kNumPriorities> rounds_;
  int workers_{0};             // arena threads that run tasks
  double running_s_{0};        // expected time of the tasks that run on the arena
  double normal_credit_s_{0};  // time that normal tasks may take while high-priority ones wait
  double mean_scale_{1};       // measured over predicted time of all clients, moving average

  std::condition_variable workers_ended_;  // notified when workers_ becomes 0
  std::condition_variable reserved_wake_;
  bool reserved_busy_{false};
  bool reserved_asleep_{true};       // until it is woken
  Clock::time_point last_dispatch_;  // of a task to an arena thread
  bool closing_{false};
  std::thread reserved_thread_;  // started with the first task for it
};

}  // namespace sap
