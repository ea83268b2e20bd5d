#include "server/scheduling/fair_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "server/scheduling/retry_delay.h"

namespace sap {
namespace {

// Deficit-round-robin quantum: predicted work per client and round.
constexpr double kQuantum_s = 1e-3;
// Weight of a new sample in the moving averages, and the shortest time that counts as a sample.
constexpr double kSampleWeight = 0.05;
constexpr double kMinMeasurable_s = 20e-6;

// Largest predicted wait at admission, as a fraction of the limit. The margin covers prediction
// errors: a task that expires in the queue has held its place for nothing.
constexpr double kMaxWaitFraction = 0.8;

constexpr int Index(Priority priority) { return static_cast<int>(priority); }

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
    workers_ended_.wait(lock, [this] { return workers_ == 0; });
  }
  reserved_wake_.notify_all();
  if (reserved_thread_.joinable()) reserved_thread_.join();
}

ServiceStatus FairQueue::Push(QueuedTask* task) {
  const std::lock_guard lock(mutex_);
  if (!task->preadmitted) {
    ServiceStatus checked = CheckWaitLocked(*task->account, task->priority);
    if (!checked) return checked;
  }
  task->queued = Clock::now();
  Append(task);
  if (workers_ < arena_->num_threads()) {
    StartWorker();
  } else if (task->priority == Priority::kHigh && high_running_ == 0 && !reserved_busy_) {
    WakeReservedThread();
  }
  return {};
}

ServiceStatus FairQueue::CheckWait(const ClientAccount& account, Priority priority) const {
  const std::lock_guard lock(mutex_);
  return CheckWaitLocked(account, priority);
}

ServiceStatus FairQueue::CheckWaitLocked(const ClientAccount& account, Priority priority) const {
  const double wait_s = PredictedWait(account, priority);
  if (wait_s <= kMaxWaitFraction * timeout_s_) return {};
  return tl::unexpected(QueueTimeError(
      "the predicted wait in the queue exceeds the limit of " + Seconds(timeout_s_), wait_s / 4));
}

tl::expected<FairQueue::Reservation, ServiceError> FairQueue::Reserve(ClientAccount* account,
                                                                      Priority priority) {
  const std::lock_guard lock(mutex_);
  if (ServiceStatus checked = CheckWaitLocked(*account, priority); !checked) {
    return tl::unexpected(checked.error());
  }
  Flow& flow = account->flows_[Index(priority)];
  Round& round = rounds_[Index(priority)];
  ++flow.reserved;
  ++round.reserved;
  flow.reserved_s += flow.mean_s;
  round.reserved_s += flow.mean_s;
  return Reservation{priority, flow.mean_s};
}

void FairQueue::ReleaseReservation(ClientAccount* account, const Reservation& reservation) {
  const std::lock_guard lock(mutex_);
  Flow& flow = account->flows_[Index(reservation.priority)];
  Round& round = rounds_[Index(reservation.priority)];
  flow.reserved_s = --flow.reserved > 0 ? flow.reserved_s - reservation.work_s : 0;
  round.reserved_s = --round.reserved > 0 ? round.reserved_s - reservation.work_s : 0;
}

ServiceError FairQueue::Expired() const {
  return QueueTimeError("the wait in the queue exceeded the limit of " + Seconds(timeout_s_),
                        timeout_s_ / 4);
}

int FairQueue::queued() const {
  const std::lock_guard lock(mutex_);
  return rounds_[0].tasks + rounds_[1].tasks;
}

int FairQueue::running() const {
  const std::lock_guard lock(mutex_);
  return workers_ + (reserved_busy_ ? 1 : 0);
}

// Predicted wait of the client's next task if the client gets its fair share and no other tasks
// arrive. Per round, each other client runs as much work as this client, or all it has.
double FairQueue::PredictedWait(const ClientAccount& account, Priority priority) const {
  const Round& high = rounds_[Index(Priority::kHigh)];
  const Round& round = rounds_[Index(priority)];
  const Flow& flow = account.flows_[Index(priority)];
  const double own_s = flow.work_s + flow.reserved_s;
  const double all_s = round.work_s + round.reserved_s;
  double ahead_s = std::min(all_s, own_s * std::max(1, round.flows));
  if (priority == Priority::kNormal) ahead_s += high.work_s;
  // Running tasks count with their full work, since their remaining time is unknown. Too long a
  // prediction costs a rejection; too short a one costs a task that expires in the queue.
  if (own_s > 0) ahead_s += running_s_;
  return scale_ * ahead_s / arena_->num_threads();
}

void FairQueue::Append(QueuedTask* task) {
  Round& round = rounds_[Index(task->priority)];
  Flow& flow = task->account->flows_[Index(task->priority)];
  task->next = nullptr;
  if (flow.first == nullptr) {
    flow.first = task;
    flow.credit_s = 0;
    flow.next = round.last == nullptr ? &flow : round.last->next;
    if (round.last != nullptr) round.last->next = &flow;
    round.last = &flow;
    ++round.flows;
  } else {
    flow.last->next = task;
  }
  flow.last = task;
  flow.work_s += task->work_s;
  flow.mean_s += kSampleWeight * (task->work_s - flow.mean_s);
  round.work_s += task->work_s;
  ++round.tasks;
  num_waiting_.fetch_add(1, std::memory_order_relaxed);
}

QueuedTask* FairQueue::PopNext() {
  for (Round& round : rounds_) {
    if (QueuedTask* task = Pop(&round)) return task;
  }
  return nullptr;
}

QueuedTask* FairQueue::Pop(Round* round) {
  if (round->last == nullptr) return nullptr;
  // At most one pass over the ring; then a new round begins, in which at least one client has
  // enough credit.
  for (int i = 0; i < round->flows; ++i) {
    if (round->last->next->credit_s >= round->last->next->first->work_s) break;
    round->last = round->last->next;
    if (i + 1 == round->flows) StartRound(round);
  }
  while (round->last->next->credit_s < round->last->next->first->work_s) {
    round->last = round->last->next;
  }
  Flow* flow = round->last->next;
  QueuedTask* task = flow->first;
  flow->first = task->next;
  flow->credit_s -= task->work_s;
  flow->work_s = flow->first == nullptr ? 0 : flow->work_s - task->work_s;
  --round->tasks;
  round->work_s = round->tasks == 0 ? 0 : round->work_s - task->work_s;
  if (flow->first == nullptr) {
    if (--round->flows == 0) {
      round->last = nullptr;
    } else {
      round->last->next = flow->next;
    }
  }
  return task;
}

// Grants as many quanta at once as the cheapest next task needs.
void FairQueue::StartRound(Round* round) {
  double quanta = std::numeric_limits<double>::infinity();
  Flow* flow = round->last;
  for (int i = 0; i < round->flows; ++i, flow = flow->next) {
    quanta = std::min(quanta, std::ceil((flow->first->work_s - flow->credit_s) / kQuantum_s));
  }
  // One extra quantum, in case round-off leaves the credit just below the task's work.
  for (int i = 0; i < round->flows; ++i, flow = flow->next) {
    flow->credit_s += kQuantum_s * (quanta + 1);
  }
}

void FairQueue::StartWorker() {
  arena_->Enqueue([](void* queue) noexcept { static_cast<FairQueue*>(queue)->RunOnArena(); }, this);
  ++workers_;
}

void FairQueue::WakeReservedThread() {
  if (!reserved_thread_.joinable()) {
    reserved_thread_ = std::thread([this] { RunOnReservedThread(); });
  }
  reserved_wake_.notify_one();
}

void FairQueue::RunOnArena() {
  LowerPriority(nice_);
  std::unique_lock lock(mutex_);
  while (QueuedTask* task = PopNext()) Run(task, Dispatch::kArena, &lock);
  // Notify under the lock: once it is released, the queue may be destroyed.
  if (--workers_ == 0) workers_ended_.notify_all();
}

void FairQueue::RunOnReservedThread() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    QueuedTask* task = high_running_ == 0 ? Pop(rounds_.data()) : nullptr;
    if (task == nullptr) {
      reserved_wake_.wait(lock);
      continue;
    }
    reserved_busy_ = true;
    Run(task, Dispatch::kReservedThread, &lock);
    reserved_busy_ = false;
  }
}

void FairQueue::Run(QueuedTask* task, Dispatch dispatch, std::unique_lock<std::mutex>* lock) {
  const bool high = task->priority == Priority::kHigh;
  const double work_s = task->work_s;
  num_waiting_.fetch_sub(1, std::memory_order_relaxed);
  if (high) ++high_running_;
  if (dispatch == Dispatch::kArena) running_s_ += work_s;
  lock->unlock();
  const Clock::time_point start = Clock::now();
  const std::chrono::duration<double> waited = start - task->queued;
  const bool expired = !task->preadmitted && waited.count() > timeout_s_;
  task->run(task->context, expired ? Dispatch::kExpired : dispatch);  // may free the task
  const std::chrono::duration<double> took = Clock::now() - start;
  lock->lock();
  if (high) --high_running_;
  if (dispatch == Dispatch::kArena) running_s_ = workers_ > 1 ? running_s_ - work_s : 0;
  if (!expired) UpdateScale(work_s, took.count());
}

void FairQueue::UpdateScale(double predicted_s, double measured_s) {
  if (predicted_s < kMinMeasurable_s || measured_s < kMinMeasurable_s) return;
  const double ratio = std::clamp(measured_s / predicted_s, 0.01, 100.0);
  scale_ += kSampleWeight * (ratio - scale_);
}

}  // namespace sap
