// Whose turn it is: work that waits for a thread of the arena.
//
//   high priority    client A [task task]    client B [task]      round robin, by predicted work
//   normal priority  client A [task]  client C [task task task]   when none of high priority waits
//
// In each round every client that has work may start as much of it as the others (deficit round
// robin: Shreedhar, Varghese 1995), so one that sends much waits for itself and not the others for
// it. At most as many tasks run at once as the arena has threads. A task of high priority does not
// wait for those to end: while they all run work of normal priority, a thread kept for it alone
// takes it.
//
// A task that would wait for longer than the limit is refused when it comes, by what is predicted;
// and when its turn comes, if the prediction was wrong.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "server/scheduling/client_account.h"
#include "server/service_error.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// Where a task's turn has come.
enum class Turn : uint8_t {
  kOnArena,
  kReservedThread,  // on a thread from which the arena must not be used
  kExpired,         // it has waited too long; only its refusal is to be sent
};

// Work that waits. Whoever pushes it keeps it until it runs.
struct QueuedTask {
  using Clock = std::chrono::steady_clock;
  void (*run)(void* context, Turn turn){nullptr};
  void* context{nullptr};
  ClientAccount* account{nullptr};
  Priority priority{Priority::kNormal};
  double work_s{0};         // predicted
  bool preadmitted{false};  // part of a call that was let in: neither refused nor expired
  Clock::time_point queued;
  QueuedTask* next{nullptr};
};

// Thread-safe. Pushing and running allocate nothing but what the arena does.
class WorkQueue {
 public:
  // The arena must outlive the queue. Its threads that take tasks stand back by `nice`, so that the
  // one kept for high priority goes first where there are fewer processors than threads at work.
  WorkQueue(TaskArena* arena, double timeout_s, int nice = 0)
      : arena_(arena), timeout_s_(timeout_s), nice_(nice) {}
  // Nothing may be queued. Waits for threads that are just leaving.
  ~WorkQueue();

  // Runs the task when its turn comes; RESOURCE_EXHAUSTED if that is too far away, and then it is
  // not run. Never refuses a task of a call that was let in.
  ServiceStatus Push(QueuedTask* task);

  // RESOURCE_EXHAUSTED if a task of the client would wait for too long.
  ServiceStatus CheckWait(const ClientAccount& account, Priority priority) const;

  // Work of a call whose message has not been read yet: as much as its client's tasks had lately.
  struct Expected {
    Priority priority{Priority::kNormal};
    double work_s{0};
  };
  // RESOURCE_EXHAUSTED as above; else it is taken into account until the message has arrived.
  tl::expected<Expected, ServiceError> Expect(ClientAccount* account, Priority priority);
  void Arrived(ClientAccount* account, const Expected& expected);

  // The refusal of an expired task.
  ServiceError Expired() const;

  int queued() const;
  // Whether several tasks wait for each thread. Takes no lock.
  bool backlogged() const {
    return waiting_.load(std::memory_order_relaxed) >= kCrowd * arena_->num_threads();
  }
  int running() const;

 private:
  static constexpr int kCrowd = 4;
  using Clock = QueuedTask::Clock;
  using Flow = ClientAccount::Flow;

  // The clients that have tasks of one priority, in a ring; the first is next.
  struct Round {
    Flow* last{nullptr};  // whose next is the first
    int flows{0};
    int tasks{0};
    double work_s{0};
    int expected{0};       // calls whose messages are being read
    double expected_s{0};  // and their work
  };

  ServiceStatus CheckWaitLocked(const ClientAccount& account, Priority priority) const;
  double PredictedWait(const ClientAccount& account, Priority priority) const;
  void Append(QueuedTask* task);
  QueuedTask* PopNext();
  static QueuedTask* Pop(Round* round);
  static void StartRound(Round* round);
  void Start();
  void StartAlone();
  void RunOnArena();
  void RunAlone();
  void Run(QueuedTask* task, Turn turn, std::unique_lock<std::mutex>* lock);
  void Learn(double predicted_s, double measured_s);

  TaskArena* const arena_;
  const double timeout_s_;
  const int nice_;

  std::atomic<int> waiting_{0};  // tasks that are queued

  mutable std::mutex mutex_;
  std::array<Round, kNumPriorities> rounds_;
  int workers_{0};       // threads of the arena that take tasks
  int high_running_{0};  // tasks of high priority among those that run
  double running_s_{0};  // work of the tasks that run on the arena
  double scale_{1};      // measured over predicted time, of the tasks run lately

  std::condition_variable left_;  // told by the last worker
  std::condition_variable alone_wake_;
  bool alone_busy_{false};
  bool closing_{false};
  std::thread alone_;  // once there has been a task for it
};

}  // namespace sap
