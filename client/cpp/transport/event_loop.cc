#include "client/cpp/transport/event_loop.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

#include "solver/parallel/signals_blocked.h"

namespace sap::client {
namespace {

// In a longer wait the wake-up is a small part.
constexpr std::chrono::milliseconds kPollTime{1};

gpr_timespec Deadline(Clock::time_point until) {
  if (until == kNever) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const std::chrono::nanoseconds left = std::max<Clock::duration>(until - Clock::now(), {});
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
}

}  // namespace

EventLoop::~EventLoop() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool EventLoop::HandleNext(Clock::time_point until) {
  void* tag = nullptr;
  bool ok = false;
  if (!Next(until, &tag, &ok)) return false;
  auto* operation = static_cast<Operation*>(tag);
  operation->events->Complete(operation, ok);
  return true;
}

bool EventLoop::Next(Clock::time_point until, void** tag, bool* ok) {
  if (polls_) {
    const gpr_timespec at_once = gpr_time_0(GPR_CLOCK_MONOTONIC);
    const Clock::time_point poll_until = std::min(until, Clock::now() + kPollTime);
    do {
      const auto found = queue_.AsyncNext(tag, ok, at_once);
      if (found != grpc::CompletionQueue::TIMEOUT) return found == grpc::CompletionQueue::GOT_EVENT;
      std::this_thread::yield();  // to a server on the same processor
    } while (Clock::now() < poll_until);
  }
  return queue_.AsyncNext(tag, ok, Deadline(until)) == grpc::CompletionQueue::GOT_EVENT;
}

void* Events::Begin(Operation* operation) {
  *operation = {.events = this, .pending = true};
  ++pending_;
  return operation;
}

void Events::Add() {
  if (waiting_) std::exchange(waiting_, nullptr).resume();
}

void Events::AddAt(Clock::time_point time) {
  Timer& timer = timers_.emplace_back();
  timer.alarm.Set(queue(), Deadline(time), Begin(&timer.operation));
  if (cancelled_) timer.alarm.Cancel();
}

void Events::CancelTimers() {
  for (Timer& timer : timers_) timer.alarm.Cancel();
}

void Events::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
  CancelTimers();
}

void Events::CallAfterEvents(std::weak_ptr<void> owner, std::function<void()> after) {
  owner_ = std::move(owner);
  after_ = std::move(after);
}

void Events::Complete(Operation* operation, bool ok) {
  const std::shared_ptr<void> owner = owner_.lock();
  {
    const std::lock_guard lock(mutex_);
    operation->pending = false;
    operation->ok = ok;
    --pending_;
    timers_.remove_if([&](const Timer& timer) { return &timer.operation == operation; });
    Add();
  }
  if (after_) after_();
}

CancelledWithEvents::CancelledWithEvents(Events* events, grpc::ClientContext* context)
    : events_(events), context_(context) {
  events_->contexts_.insert(context_);
  if (events_->cancelled_) context_->TryCancel();
}

CancelledWithEvents::~CancelledWithEvents() { events_->contexts_.erase(context_); }

BackgroundLoop::BackgroundLoop(bool polls) : loop_(std::make_shared<EventLoop>(polls)) {
  const SignalsBlocked signals_blocked;
  thread_ = std::thread([loop = loop_] {
    while (loop->HandleNext(kNever)) {
    }
  });
}

BackgroundLoop::~BackgroundLoop() {
  loop_->Shutdown();
  // Its last call may have ended on the thread itself.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace sap::client
