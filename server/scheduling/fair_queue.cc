#include "server/scheduling/fair_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "server/scheduling/retry_delay.h"

namespace sap {
namespace {

// Largest predicted wait at admission, as a fraction of the limit. The margin covers prediction
// errors: a task that expires in the queue has held its place for nothing.
constexpr double kMaxWaitFraction = 0.8;

ServiceError QueueTimeError(const std::string& what, double retry_after_s) {
  ServiceError error{ServiceCode::kResourceExhausted, what + "; retry later", ""};
  error.reason = "QUEUE_TIME";
  error.retry_after_s = BoundedRetryDelay(retry_after_s);
  return error;
}

// Sets the nice value of the calling thread (Linux: per thread). Without privileges it cannot be
// lowered again.
void LowerPriority(int nice) {
  thread_local int current = 0;
  if (current == nice) return;
  current = nice;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);  // best effort
}

std::string Seconds(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

}  // namespace

FairQueue::~FairQueue() {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    workers_ended_.wait(lock, [this] { return order_.workers() == 0; });
  }
  reserved_wake_.notify_all();
  if (reserved_thread_.joinable()) reserved_thread_.join();
}

ServiceStatus FairQueue::Push(QueuedTask* task) {
  task->priority = task->account->Granted(task->priority);
  const std::lock_guard lock(mutex_);
  task->expected_s = order_.ExpectedTime(*task);
  if (!task->preadmitted) {
    ServiceStatus checked = CheckWaitLocked(*task->account, task->priority, task->expected_s);
    if (!checked) return checked;
  }
  task->queued = now_();
  num_waiting_.fetch_add(1, std::memory_order_relaxed);
  if (order_.Append(task, task->queued)) StartWorker();
  // Where a task runs already, the worker may come late.
  const bool may_wait = order_.running_on_arena() > 0;
  if (may_wait && (reserved_asleep_ || order_.MayRunBeyondArena(*task, task->queued))) {
    WakeReservedThread();
  }
  return {};
}

ServiceStatus FairQueue::CheckWait(const ClientAccount& account, Priority asked) const {
  const Priority priority = account.Granted(asked);
  const std::lock_guard lock(mutex_);
  return CheckWaitLocked(account, priority, FairOrder::MeanTime(account, priority));
}

ServiceStatus FairQueue::CheckWaitLocked(const ClientAccount& account, Priority priority,
                                         double task_s) const {
  const double wait_s = order_.PredictedWait(account, priority, task_s);
  if (wait_s <= kMaxWaitFraction * timeout_s_) return {};
  return tl::unexpected(QueueTimeError(
      "the predicted wait in the queue exceeds the limit of " + Seconds(timeout_s_), wait_s / 4));
}

tl::expected<FairQueue::Reservation, ServiceError> FairQueue::Reserve(ClientAccount* account,
                                                                      Priority asked) {
  const Priority priority = account->Granted(asked);
  const std::lock_guard lock(mutex_);
  const double mean_s = FairOrder::MeanTime(*account, priority);
  if (ServiceStatus checked = CheckWaitLocked(*account, priority, mean_s); !checked) {
    return tl::unexpected(checked.error());
  }
  return Reservation{priority, order_.Reserve(account, priority)};
}

void FairQueue::ReleaseReservation(ClientAccount* account, const Reservation& reservation) {
  const std::lock_guard lock(mutex_);
  order_.ReleaseReservation(account, reservation.priority, reservation.work_s);
}

ServiceError FairQueue::Expired() const {
  return QueueTimeError("the wait in the queue exceeded the limit of " + Seconds(timeout_s_),
                        timeout_s_ / 4);
}

int FairQueue::queued() const {
  const std::lock_guard lock(mutex_);
  return order_.queued();
}

int FairQueue::running() const {
  const std::lock_guard lock(mutex_);
  return order_.workers() + (order_.runs_beyond_arena() ? 1 : 0);
}

void FairQueue::StartWorker() {
  arena_->Enqueue([](void* queue) noexcept { static_cast<FairQueue*>(queue)->RunOnArena(); }, this);
}

void FairQueue::WakeReservedThread() {
  if (!reserved_thread_.joinable()) {
    reserved_thread_ = std::thread([this] { RunOnReservedThread(); });
  }
  reserved_asleep_ = false;
  reserved_wake_.notify_one();
}

void FairQueue::RunOnArena() {
  LowerPriority(nice_);
  std::unique_lock lock(mutex_);
  while (QueuedTask* task = order_.StartOnArena(now_())) {
    // This one may be long, and the workers for those that wait may help it before they come.
    if (order_.queued() > 0 && reserved_asleep_) WakeReservedThread();
    Run(task, Dispatch::kArena, &lock);
  }
  // Notify under the lock: once it is released, the queue may be destroyed.
  if (order_.workers() == 0) workers_ended_.notify_all();
}

void FairQueue::RunOnReservedThread() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    QueuedTask* task = order_.StartBeyondArena(now_());
    if (task != nullptr) {
      Run(task, Dispatch::kReservedThread, &lock);
    } else if (order_.queued() > 0) {
      // While tasks wait it looks again, since a thread that is held wakes nobody.
      reserved_wake_.wait_for(lock, held_);
    } else {
      reserved_asleep_ = true;
      reserved_wake_.wait(lock);
    }
  }
}

void FairQueue::Run(QueuedTask* queued, Dispatch dispatch, std::unique_lock<std::mutex>* lock) {
  const QueuedTask task = *queued;                                // it may be freed by what it runs
  const auto keep_alive = task.account->weak_from_this().lock();  // the call may end before
  num_waiting_.fetch_sub(1, std::memory_order_relaxed);
  const Clock::time_point start = now_();
  lock->unlock();
  const std::chrono::duration<double> waited = start - task.queued;
  const bool expired = !task.preadmitted && waited.count() > timeout_s_;
  task.run(task.context, expired ? Dispatch::kExpired : dispatch);
  const Clock::time_point end = now_();
  const std::chrono::duration<double> took = end - start;
  lock->lock();
  if (order_.End(task, took.count(), /*counts=*/!expired, end)) StartWorker();
}

}  // namespace sap
