// Completion queues of gRPC, and what the coroutines of calls wait for. Internal.
//
//   operation of gRPC -> EventLoop -> Events of its call or session -> the coroutine goes on
//
// The same coroutine serves a call that blocks, whose thread handles the events of a loop of its
// own, and one in the background, where one thread handles those of all calls of a client. The
// first kind is quicker: no thread wakes another one.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>

namespace sap::client {

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNever = Clock::time_point::max();

// Between two looks at a flag that another thread sets.
inline constexpr std::chrono::milliseconds kFlagPeriod{20};

class Events;

// An operation of gRPC, whose address is its tag. It must outlive its completion.
struct Operation {
  Events* events{nullptr};
  bool pending{false};
  bool ok{false};  // false: nothing more to read, or the call has ended
};

// A completion queue.
class EventLoop {
 public:
  // `polls`: whether to poll before blocking. Waking a blocked thread, and its processor out of a
  // sleep state, can take longer than solving a small problem.
  explicit EventLoop(bool polls) : polls_(polls) {}
  // No operation may be pending.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  grpc::CompletionQueue* queue() { return &queue_; }

  // Waits for the next event and passes it on. False: none by then, or the loop was shut down.
  bool HandleNext(Clock::time_point until);
  void Shutdown() { queue_.Shutdown(); }

 private:
  bool Next(Clock::time_point until, void** tag, bool* ok);

  const bool polls_;
  grpc::CompletionQueue queue_;
};

// The events of one call or session, for which one coroutine waits at a time. It may be resumed by
// events that it did not wait for, so it looks at its conditions again after each.
class Events {
 public:
  // Recursive, as what a coroutine calls may call back.
  using Mutex = std::recursive_mutex;

  explicit Events(EventLoop* loop) : loop_(loop) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Held while the coroutine runs.
  Mutex& mutex() { return mutex_; }

  // ---- Under the mutex.

  grpc::CompletionQueue* queue() { return loop_->queue(); }

  // The tag of an operation that begins.
  void* Begin(Operation* operation);

  // co_await events.Next(): waits for an event.
  auto Next() {
    struct Awaiter {
      Events* events;
      bool await_ready() { return false; }
      void await_suspend(std::coroutine_handle<> handle) { events->waiting_ = handle; }
      void await_resume() {}
    };
    return Awaiter{this};
  }
  // An event from within the process.
  void Add();
  // An event at that time.
  void AddAt(Clock::time_point time);
  void CancelTimers();

  // Whether no operation is pending.
  bool idle() const { return pending_ == 0; }

  // Whether the call was cancelled by Cancel.
  bool cancelled() const { return cancelled_; }

  // ---- From any thread.

  // Cancels the calls of gRPC and timers that the coroutine waits for, and later ones at once.
  void Cancel();

  // Called after each event, without the mutex; `owner` lives until it has returned.
  void CallAfterEvents(std::weak_ptr<void> owner, std::function<void()> after);

  // For the loop: the operation is complete.
  void Complete(Operation* operation, bool ok);

 private:
  friend class CancelledWithEvents;

  struct Timer {
    Operation operation;
    grpc::Alarm alarm;
  };

  EventLoop* const loop_;
  Mutex mutex_;
  std::coroutine_handle<> waiting_{};
  int pending_{0};
  bool cancelled_{false};
  std::list<Timer> timers_;
  std::unordered_set<grpc::ClientContext*> contexts_;
  std::weak_ptr<void> owner_;
  std::function<void()> after_;
};

// Makes Events::Cancel cancel a call of gRPC, while this exists.
class CancelledWithEvents {
 public:
  CancelledWithEvents(Events* events, grpc::ClientContext* context);
  ~CancelledWithEvents();
  CancelledWithEvents(const CancelledWithEvents&) = delete;
  CancelledWithEvents& operator=(const CancelledWithEvents&) = delete;

 private:
  Events* const events_;
  grpc::ClientContext* const context_;
};

// A loop with a thread that handles its events until this is destroyed.
class BackgroundLoop {
 public:
  explicit BackgroundLoop(bool polls);
  ~BackgroundLoop();
  BackgroundLoop(const BackgroundLoop&) = delete;
  BackgroundLoop& operator=(const BackgroundLoop&) = delete;

  EventLoop* loop() { return loop_.get(); }

 private:
  const std::shared_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace sap::client
