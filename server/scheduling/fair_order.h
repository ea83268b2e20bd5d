// Which task is next, and on which thread it may run: the rules of FairQueue, without its threads.
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
// Tasks run on workers in the arena, at most as many as it has threads, and one task at a time runs
// on a thread beyond the arena. No client runs normal tasks on all of these threads, whatever they
// take:
//
//   beyond the arena    a task of high priority, if the arena is full of normal ones, those of its
//                       own client included; a task of a client that runs nowhere, if the arena is
//                       held: some task runs there, all workers are started, and for 50 ms no
//                       worker was started and no task began there
//   in the arena        everybody, except that the client that runs beyond it leaves one thread of
//                       it to others
//
// A worker that is started has no thread yet. It may come late, or not as long as a task runs that
// shares its loops with all threads. So workers do not tell which clients run, and time decides
// that they do not come.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/scheduling/client_account.h"

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
  // For the order.
  double expected_s{0};      // predicted time, corrected by the client's earlier tasks
  bool contended{false};     // started while tasks of both priorities waited
  bool beyond_arena{false};  // where it runs
  QueuedTask* next{nullptr};
};

// Not thread-safe. Allocates no memory.
class FairOrder {
 public:
  using Clock = QueuedTask::Clock;

  // `held`: the time without a start after which long solves hold the arena.
  FairOrder(int num_threads, Clock::duration held) : num_threads_(num_threads), held_(held) {}

  // Appends the task to those of its client. True: a worker has to be started for it.
  bool Append(QueuedTask* task, Clock::time_point now);

  // The next task of a worker; it counts as running from now on. Null: the worker ends.
  QueuedTask* StartOnArena(Clock::time_point now);
  // The next task of the thread beyond the arena, which runs none. Null: none may run there now.
  QueuedTask* StartBeyondArena(Clock::time_point now);
  // Whether the task, the next one of its client, may run beyond the arena, where none runs.
  bool MayRunBeyondArena(const QueuedTask& task, Clock::time_point now) const;
  // A running task has ended, of which this is a copy; `counts`: its time is a sample for
  // predictions. True: a worker has to be started, for tasks that waited for it to end.
  bool End(const QueuedTask& task, double took_s, bool counts, Clock::time_point now);

  // Predicted wait of a task of the client that takes so long.
  double PredictedWait(const ClientAccount& account, Priority priority, double task_s) const;
  // Time that the task takes by its client's earlier ones.
  double ExpectedTime(const QueuedTask& task) const;
  // Expected time of a task of the client, moving average.
  static double MeanTime(const ClientAccount& account, Priority priority);
  // Counts a call in predictions whose message is not yet read, with the client's mean per task,
  // which is returned; and no longer.
  double Reserve(ClientAccount* account, Priority priority);
  void ReleaseReservation(ClientAccount* account, Priority priority, double work_s);

  int queued() const { return rounds_[0].tasks + rounds_[1].tasks; }
  int workers() const { return workers_; }
  int running_on_arena() const { return running_on_arena_; }
  bool runs_beyond_arena() const { return beyond_ != nullptr; }
  // Clients with queued tasks, in each priority. Thread-safe.
  int queued_flows() const { return queued_flows_.load(std::memory_order_relaxed); }

 private:
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

  QueuedTask* PopForArena();
  bool IsHeld(Clock::time_point now) const;
  QueuedTask* Pop(Round* round, Flow* before);
  template <typename Accept>
  static Flow* BeforeEarliest(const Round& round, Accept&& accept);
  void CountQueuedFlow(ClientAccount* account, int change);
  void Charge(ClientAccount* account, Priority priority, double seconds, bool contended);
  void UpdateScale(ClientAccount* account, double predicted_s, double measured_s);
  void StartWorker(Clock::time_point now);
  void Begin(QueuedTask* task);

  const int num_threads_;
  const Clock::duration held_;
  std::array<Round, kNumPriorities> rounds_;
  std::atomic<int> queued_flows_{0};
  double normal_credit_s_{0};  // time that normal tasks may take while high-priority ones wait
  double mean_scale_{1};       // measured over predicted time of all clients, moving average

  int workers_{0};                        // started and not ended
  int running_on_arena_{0};               // tasks
  double running_s_{0};                   // expected time of these
  Clock::time_point latest_;              // start of a worker, or of a task in the arena
  const ClientAccount* beyond_{nullptr};  // client whose task runs beyond the arena
};

}  // namespace sap
