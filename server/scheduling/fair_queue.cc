#include "server/scheduling/fair_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "server/scheduling/retry_delay.h"

namespace sap {
namespace {

// While both priorities wait, time of high-priority tasks per time of normal ones.
constexpr double kHighShare = 9;
// A normal task that took longer than it had earned keeps the others of its priority waiting for
// ninefold this time at most.
constexpr double kMaxNormalDebt_s = 1;

// Most inline time that is charged at once: for what came long before, nobody may have waited.
constexpr double kMaxInlineCharge_s = 0.1;
// Weight of a new sample in the moving averages, and the shortest time that counts as a sample.
constexpr double kSampleWeight = 0.05;
constexpr double kMinMeasurable_s = 20e-6;
// Bounds of the ratio of measured to predicted time: of one client, and of the mean that new
// clients start from, which one client must not spoil.
constexpr double kMaxScale = 100;
constexpr double kMaxMeanScale = 4;

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
  task->priority = task->account->Granted(task->priority);
  const std::lock_guard lock(mutex_);
  task->expected_s = ExpectedTime(*task);
  if (!task->preadmitted) {
    ServiceStatus checked = CheckWaitLocked(*task->account, task->priority, task->expected_s);
    if (!checked) return checked;
  }
  task->queued = now_();
  Append(task);
  if (workers_ < arena_->num_threads()) {
    StartWorker();
  } else if (!reserved_busy_ && (reserved_asleep_ || IsHeld() ||
                                 (task->priority == Priority::kHigh &&
                                  rounds_[Index(Priority::kHigh)].running == 0))) {
    WakeReservedThread();
  }
  return {};
}

ServiceStatus FairQueue::CheckWait(const ClientAccount& account, Priority asked) const {
  const Priority priority = account.Granted(asked);
  const std::lock_guard lock(mutex_);
  return CheckWaitLocked(account, priority, account.flows_[Index(priority)].mean_s);
}

ServiceStatus FairQueue::CheckWaitLocked(const ClientAccount& account, Priority priority,
                                         double task_s) const {
  const double wait_s = PredictedWait(account, priority, task_s);
  if (wait_s <= kMaxWaitFraction * timeout_s_) return {};
  return tl::unexpected(QueueTimeError(
      "the predicted wait in the queue exceeds the limit of " + Seconds(timeout_s_), wait_s / 4));
}

tl::expected<FairQueue::Reservation, ServiceError> FairQueue::Reserve(ClientAccount* account,
                                                                      Priority asked) {
  const Priority priority = account->Granted(asked);
  const std::lock_guard lock(mutex_);
  Flow& flow = account->flows_[Index(priority)];
  if (ServiceStatus checked = CheckWaitLocked(*account, priority, flow.mean_s); !checked) {
    return tl::unexpected(checked.error());
  }
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

// Predicted wait of the client's next task, which takes `task_s`, if the client gets its fair share
// and no other tasks arrive. For what this client runs, each other client runs as much or all it
// has, and the other priority what is in the ratio of their shares.
double FairQueue::PredictedWait(const ClientAccount& account, Priority priority,
                                double task_s) const {
  const Round& round = rounds_[Index(priority)];
  const Flow& flow = account.flows_[Index(priority)];
  const double own_s = flow.work_s + flow.reserved_s;
  const double all_s = round.work_s + round.reserved_s;
  double ahead_s = std::min(all_s, own_s * std::max(1, round.flows));
  if (priority == Priority::kNormal) {
    ahead_s += std::min(rounds_[Index(Priority::kHigh)].work_s, kHighShare * (ahead_s + task_s));
  } else {
    ahead_s += std::min(rounds_[Index(Priority::kNormal)].work_s, ahead_s / kHighShare);
  }
  // Running tasks count with their full work, since their remaining time is unknown. Too long a
  // prediction costs a rejection; too short a one costs a task that expires in the queue.
  if (own_s > 0) ahead_s += running_s_;
  return ahead_s / arena_->num_threads();
}

double FairQueue::ExpectedTime(const QueuedTask& task) const {
  const double scale = task.account->scale_;
  return task.work_s * (scale > 0 ? scale : mean_scale_);
}

void FairQueue::Append(QueuedTask* task) {
  Round& round = rounds_[Index(task->priority)];
  Flow& flow = task->account->flows_[Index(task->priority)];
  // With nobody waiting or running, all debts are forgiven.
  if (round.tasks == 0 && round.running == 0) round.virtual_s = round.latest_s;
  task->next = nullptr;
  if (flow.first == nullptr) {
    flow.first = task;
    flow.virtual_s = std::max(flow.virtual_s, round.virtual_s);
    flow.next = round.last == nullptr ? &flow : round.last->next;
    if (round.last != nullptr) round.last->next = &flow;
    round.last = &flow;
    ++round.flows;
    CountQueuedFlow(task->account, 1);
  } else {
    flow.last->next = task;
  }
  const auto inline_ns = task->account->inline_use_.uncharged_ns.exchange(0);
  flow.virtual_s += std::min(static_cast<double>(inline_ns) * 1e-9, kMaxInlineCharge_s);
  flow.last = task;
  flow.work_s += task->expected_s;
  flow.mean_s += kSampleWeight * (task->expected_s - flow.mean_s);
  round.work_s += task->expected_s;
  ++round.tasks;
  num_waiting_.fetch_add(1, std::memory_order_relaxed);
}

// While both priorities wait, a normal task runs once high-priority tasks have earned its time.
QueuedTask* FairQueue::PopNext() {
  Round& high = rounds_[Index(Priority::kHigh)];
  Round& normal = rounds_[Index(Priority::kNormal)];
  if (high.tasks == 0) {
    normal_credit_s_ = 0;
    return Pop(&normal, BeforeEarliest(normal));
  }
  if (normal.tasks == 0) return Pop(&high, BeforeEarliest(high));
  const double needed_s = BeforeEarliest(normal)->next->first->expected_s;
  Round& next = normal_credit_s_ < needed_s ? high : normal;
  return Pop(&next, BeforeEarliest(next));
}

// Whether long solves hold all arena threads.
bool FairQueue::IsHeld() const {
  return workers_ == arena_->num_threads() && now_() - last_dispatch_ >= held_;
}

// A high-priority task if none runs. Else, where long solves hold all arena threads, the next task
// of a client that has none running: those who hold the threads must not keep all others waiting.
QueuedTask* FairQueue::PopForReservedThread() {
  Round& high = rounds_[Index(Priority::kHigh)];
  if (high.running == 0 && high.tasks > 0) return Pop(&high, BeforeEarliest(high));
  if (!IsHeld()) return nullptr;
  for (Round& round : rounds_) {
    Flow* const before =
        BeforeEarliest(round, [](const Flow& flow) { return flow.first->account->running_ == 0; });
    if (before != nullptr) return Pop(&round, before);
  }
  return nullptr;
}

// The predecessor in the ring of the accepted client with the earliest virtual time; of equal ones
// the first in the ring; null if there is none. Linear in the clients that wait, of which there are
// at most as many as calls.
template <typename Accept>
FairQueue::Flow* FairQueue::BeforeEarliest(const Round& round, Accept&& accept) {
  Flow* before = nullptr;
  Flow* candidate = round.last;
  for (int i = 0; i < round.flows; ++i, candidate = candidate->next) {
    if (!accept(*candidate->next)) continue;
    if (before == nullptr || candidate->next->virtual_s < before->next->virtual_s) {
      before = candidate;
    }
  }
  return before;
}

FairQueue::Flow* FairQueue::BeforeEarliest(const Round& round) {
  return BeforeEarliest(round, [](const Flow&) { return true; });
}

// Takes the next task of the client behind `before` in the ring; null: there is none.
QueuedTask* FairQueue::Pop(Round* round, Flow* before) {
  if (before == nullptr) return nullptr;
  Flow* flow = before->next;
  QueuedTask* task = flow->first;
  task->contended = rounds_[0].tasks > 0 && rounds_[1].tasks > 0;
  round->virtual_s = std::max(round->virtual_s, flow->virtual_s);
  Charge(task->account, task->priority, task->expected_s, task->contended);
  flow->first = task->next;
  flow->work_s = flow->first == nullptr ? 0 : flow->work_s - task->expected_s;
  --round->tasks;
  round->work_s = round->tasks == 0 ? 0 : round->work_s - task->expected_s;
  // Clients of equal virtual time take turns: the next search begins behind this one.
  round->last = flow;
  if (flow->first == nullptr) {
    before->next = flow->next;
    round->last = --round->flows == 0 ? nullptr : before;
    CountQueuedFlow(task->account, -1);
  }
  return task;
}

void FairQueue::CountQueuedFlow(ClientAccount* account, int change) {
  queued_flows_.fetch_add(change, std::memory_order_relaxed);
  account->inline_use_.queued_flows.fetch_add(change, std::memory_order_relaxed);
}

// Adds to the client's virtual time, and to the balance between the priorities if both waited.
void FairQueue::Charge(ClientAccount* account, Priority priority, double seconds, bool contended) {
  Round& round = rounds_[Index(priority)];
  Flow& flow = account->flows_[Index(priority)];
  flow.virtual_s += seconds;
  round.latest_s = std::max(round.latest_s, flow.virtual_s);
  if (!contended) return;
  normal_credit_s_ += priority == Priority::kHigh ? seconds / kHighShare : -seconds;
  normal_credit_s_ = std::max(normal_credit_s_, -kMaxNormalDebt_s);
}

void FairQueue::StartWorker() {
  arena_->Enqueue([](void* queue) noexcept { static_cast<FairQueue*>(queue)->RunOnArena(); }, this);
  ++workers_;
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
  while (QueuedTask* task = PopNext()) Run(task, Dispatch::kArena, &lock);
  // Notify under the lock: once it is released, the queue may be destroyed.
  if (--workers_ == 0) workers_ended_.notify_all();
}

void FairQueue::RunOnReservedThread() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    QueuedTask* task = PopForReservedThread();
    if (task == nullptr) {
      // While tasks wait it looks again, since a thread that is held wakes nobody.
      if (rounds_[0].tasks + rounds_[1].tasks > 0) {
        reserved_wake_.wait_for(lock, held_);
      } else {
        reserved_asleep_ = true;
        reserved_wake_.wait(lock);
      }
      continue;
    }
    reserved_busy_ = true;
    Run(task, Dispatch::kReservedThread, &lock);
    reserved_busy_ = false;
  }
}

void FairQueue::Run(QueuedTask* task, Dispatch dispatch, std::unique_lock<std::mutex>* lock) {
  ClientAccount* const account = task->account;
  const auto keep_alive = account->weak_from_this().lock();  // the call may end before the charge
  const Priority priority = task->priority;
  const double work_s = task->work_s;
  const double expected_s = task->expected_s;
  const bool contended = task->contended;
  Round& round = rounds_[Index(priority)];
  num_waiting_.fetch_sub(1, std::memory_order_relaxed);
  ++round.running;
  ++account->running_;
  const Clock::time_point start = now_();
  if (dispatch == Dispatch::kArena) {
    running_s_ += expected_s;
    last_dispatch_ = start;
  }
  lock->unlock();
  const std::chrono::duration<double> waited = start - task->queued;
  const bool expired = !task->preadmitted && waited.count() > timeout_s_;
  task->run(task->context, expired ? Dispatch::kExpired : dispatch);  // may free the task
  const std::chrono::duration<double> took = now_() - start;
  lock->lock();
  --round.running;
  --account->running_;
  if (dispatch == Dispatch::kArena) running_s_ = workers_ > 1 ? running_s_ - expected_s : 0;
  Charge(account, priority, took.count() - expected_s, contended);
  if (!expired) UpdateScale(account, work_s, took.count());
}

void FairQueue::UpdateScale(ClientAccount* account, double predicted_s, double measured_s) {
  if (predicted_s < kMinMeasurable_s || measured_s < kMinMeasurable_s) return;
  const double ratio = measured_s / predicted_s;
  double& scale = account->scale_;
  if (scale == 0) scale = mean_scale_;
  scale += kSampleWeight * (std::clamp(ratio, 1 / kMaxScale, kMaxScale) - scale);
  mean_scale_ +=
      kSampleWeight * (std::clamp(ratio, 1 / kMaxMeanScale, kMaxMeanScale) - mean_scale_);
}

}  // namespace sap
