// Runs the coroutines of calls: on the thread of the caller, or in the background. Internal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "client/cpp/backend/backend.h"
#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/task.h"

namespace sap::client {

// Thread-safe.
class RunningCalls {
 public:
  explicit RunningCalls(bool polls) : polls_(polls) {}

  // Runs the task make(events). A call in the background, like one here, ends soon after the flag,
  // which may be null, is set.
  template <typename Outcome, typename Make>
  void Run(Where where, const std::atomic<bool>* cancelled, const Make& make, Done<Outcome> done) {
    if (where == Where::kInBackground) {
      BackgroundCall<Outcome>::Start(this, cancelled, make, std::move(done));
    } else {
      done(RunHere<Outcome>(cancelled, make));
    }
  }

  // The loop of this client's background, which starts with the first use.
  std::shared_ptr<BackgroundLoop> background() {
    const std::lock_guard lock(mutex_);
    if (background_ == nullptr) background_ = std::make_shared<BackgroundLoop>(polls_);
    return background_;
  }

  // Cancels the calls in the background, and waits until they have passed their outcomes on.
  void CancelAll() {
    std::unique_lock lock(mutex_);
    for (Events* call : calls_) call->Cancel();
    changed_.wait(lock, [&] { return calls_.empty(); });
  }

 private:
  template <typename Outcome, typename Make>
  Outcome RunHere(const std::atomic<bool>* cancelled, const Make& make) {
    EventLoop loop(polls_);
    Events events(&loop);
    // A call that is cancelled before it begins could otherwise end first.
    bool is_cancelled = cancelled != nullptr && *cancelled;
    if (is_cancelled) events.Cancel();
    Task<Outcome> task = make(&events);
    {
      const std::lock_guard lock(events.mutex());
      task.Start();
    }
    while (!task.done() || !events.idle()) {
      if (task.done()) events.CancelTimers();
      loop.HandleNext(cancelled == nullptr || is_cancelled ? kNever : Clock::now() + kFlagPeriod);
      if (cancelled == nullptr || is_cancelled || !*cancelled) continue;
      events.Cancel();
      is_cancelled = true;
    }
    return task.Result();
  }

  // Lives until its outcome was passed on.
  template <typename Outcome>
  class BackgroundCall {
   public:
    template <typename Make>
    static void Start(RunningCalls* calls, const std::atomic<bool>* cancelled, const Make& make,
                      Done<Outcome> done) {
      const auto call = std::make_shared<BackgroundCall>(calls, cancelled, std::move(done));
      call->self_ = call;
      call->events_.CallAfterEvents(call, [call = call.get()] { call->AfterEvent(); });
      calls->Add(&call->events_);
      {
        const std::lock_guard lock(call->events_.mutex());
        call->LookAtFlag();
        call->task_.emplace(make(&call->events_));
        call->task_->Start();
      }
      call->AfterEvent();
    }

    BackgroundCall(RunningCalls* calls, const std::atomic<bool>* cancelled, Done<Outcome> done)
        : calls_(calls),
          loop_(calls->background()),
          events_(loop_->loop()),
          cancelled_(cancelled),
          done_(std::move(done)) {}

   private:
    void AfterEvent() {
      std::shared_ptr<BackgroundCall> last_user;
      {
        const std::lock_guard lock(events_.mutex());
        if (!task_->done()) return LookAtFlag();
        events_.CancelTimers();
        if (events_.idle()) last_user = std::move(self_);
      }
      if (last_user == nullptr) return;
      done_(task_->Result());
      calls_->Remove(&events_);
    }

    void LookAtFlag() {
      if (cancelled_ == nullptr || Clock::now() < next_look_) return;
      if (*cancelled_) {
        cancelled_ = nullptr;
        return events_.Cancel();
      }
      next_look_ = Clock::now() + kFlagPeriod;
      events_.AddAt(next_look_);
    }

    RunningCalls* const calls_;
    const std::shared_ptr<BackgroundLoop> loop_;
    Events events_;
    const std::atomic<bool>* cancelled_;  // null: there is none, or it was seen
    Clock::time_point next_look_{};
    const Done<Outcome> done_;
    std::optional<Task<Outcome>> task_;
    std::shared_ptr<BackgroundCall> self_;
  };

  void Add(Events* call) {
    const std::lock_guard lock(mutex_);
    calls_.insert(call);
  }
  void Remove(Events* call) {
    const std::lock_guard lock(mutex_);
    calls_.erase(call);
    changed_.notify_all();
  }

  const bool polls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_set<Events*> calls_;  // in the background
  std::shared_ptr<BackgroundLoop> background_;
};

}  // namespace sap::client
