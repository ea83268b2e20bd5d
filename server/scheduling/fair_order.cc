#include "server/scheduling/fair_order.h"

#include <algorithm>

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

constexpr int Index(Priority priority) { return static_cast<int>(priority); }

}  // namespace

bool FairOrder::Append(QueuedTask* task, Clock::time_point now) {
  Round& round = rounds_[Index(task->priority)];
  Flow& flow = task->account->flows_[Index(task->priority)];
  // With nobody waiting or running, all debts are forgiven.
  if (round.tasks == 0 && round.running == 0) round.virtual_s = round.latest_s;
  task->next = nullptr;
  task->beyond_arena = false;
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
  if (workers_ == num_threads_) return false;
  StartWorker(now);
  return true;
}

void FairOrder::StartWorker(Clock::time_point now) {
  ++workers_;
  latest_ = now;
}

QueuedTask* FairOrder::StartOnArena(Clock::time_point now) {
  QueuedTask* const task = PopForArena();
  if (task == nullptr) {
    --workers_;
    return nullptr;
  }
  Begin(task);
  ++running_on_arena_;
  running_s_ += task->expected_s;
  latest_ = now;
  return task;
}

QueuedTask* FairOrder::StartBeyondArena(Clock::time_point now) {
  for (Round& round : rounds_) {
    Flow* const before = BeforeEarliest(
        round, [&](const Flow& flow) { return MayRunBeyondArena(*flow.first, now); });
    if (before == nullptr) continue;
    QueuedTask* const task = Pop(&round, before);
    Begin(task);
    task->beyond_arena = true;
    beyond_ = task->account;
    return task;
  }
  return nullptr;
}

void FairOrder::Begin(QueuedTask* task) {
  ++rounds_[Index(task->priority)].running;
  ++task->account->running_;
}

bool FairOrder::End(const QueuedTask& task, double took_s, bool counts, Clock::time_point now) {
  --rounds_[Index(task.priority)].running;
  --task.account->running_;
  Charge(task.account, task.priority, took_s - task.expected_s, task.contended);
  if (counts) UpdateScale(task.account, task.work_s, took_s);
  if (!task.beyond_arena) {
    running_s_ = --running_on_arena_ > 0 ? running_s_ - task.expected_s : 0;
    return false;  // its worker goes on
  }
  beyond_ = nullptr;
  if (queued() == 0 || workers_ == num_threads_) return false;
  StartWorker(now);
  return true;
}

// While both priorities wait, a normal task runs once high-priority tasks have earned its time.
QueuedTask* FairOrder::PopForArena() {
  // The client beyond the arena does not take its last thread.
  const bool is_last = running_on_arena_ + 1 == num_threads_;
  const auto may_run = [&](const Flow& flow) { return !is_last || flow.first->account != beyond_; };
  Round& high = rounds_[Index(Priority::kHigh)];
  Round& normal = rounds_[Index(Priority::kNormal)];
  Flow* const before_high = BeforeEarliest(high, may_run);
  Flow* const before_normal = BeforeEarliest(normal, may_run);
  if (high.tasks == 0) normal_credit_s_ = 0;
  if (before_high == nullptr) return Pop(&normal, before_normal);
  if (before_normal == nullptr) return Pop(&high, before_high);
  const double needed_s = before_normal->next->first->expected_s;
  return normal_credit_s_ < needed_s ? Pop(&high, before_high) : Pop(&normal, before_normal);
}

bool FairOrder::IsHeld(Clock::time_point now) const {
  return workers_ == num_threads_ && running_on_arena_ > 0 && now - latest_ >= held_;
}

bool FairOrder::MayRunBeyondArena(const QueuedTask& task, Clock::time_point now) const {
  if (beyond_ != nullptr) return false;
  const int own = task.account->running_;
  const bool is_full = running_on_arena_ == num_threads_;
  const bool of_normal_tasks = rounds_[Index(Priority::kHigh)].running == 0;
  const bool goes_first = task.priority == Priority::kHigh && is_full && of_normal_tasks;
  return goes_first || (own == 0 && IsHeld(now));
}

// The predecessor in the ring of the accepted client with the earliest virtual time; of equal ones
// the first in the ring; null if there is none. Linear in the clients that wait, of which there are
// at most as many as calls.
template <typename Accept>
FairOrder::Flow* FairOrder::BeforeEarliest(const Round& round, Accept&& accept) {
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

// Takes the next task of the client behind `before` in the ring; null: there is none.
QueuedTask* FairOrder::Pop(Round* round, Flow* before) {
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

void FairOrder::CountQueuedFlow(ClientAccount* account, int change) {
  queued_flows_.fetch_add(change, std::memory_order_relaxed);
  account->inline_use_.queued_flows.fetch_add(change, std::memory_order_relaxed);
}

// Adds to the client's virtual time, and to the balance between the priorities if both waited.
void FairOrder::Charge(ClientAccount* account, Priority priority, double seconds, bool contended) {
  Round& round = rounds_[Index(priority)];
  Flow& flow = account->flows_[Index(priority)];
  flow.virtual_s += seconds;
  round.latest_s = std::max(round.latest_s, flow.virtual_s);
  if (!contended) return;
  normal_credit_s_ += priority == Priority::kHigh ? seconds / kHighShare : -seconds;
  normal_credit_s_ = std::max(normal_credit_s_, -kMaxNormalDebt_s);
}

// Predicted wait of the client's next task, which takes `task_s`, if the client gets its fair share
// and no other tasks arrive. For what this client runs, each other client runs as much or all it
// has, and the other priority what is in the ratio of their shares.
double FairOrder::PredictedWait(const ClientAccount& account, Priority priority,
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
  return ahead_s / num_threads_;
}

double FairOrder::ExpectedTime(const QueuedTask& task) const {
  const double scale = task.account->scale_;
  return task.work_s * (scale > 0 ? scale : mean_scale_);
}

double FairOrder::MeanTime(const ClientAccount& account, Priority priority) {
  return account.flows_[Index(priority)].mean_s;
}

double FairOrder::Reserve(ClientAccount* account, Priority priority) {
  Flow& flow = account->flows_[Index(priority)];
  Round& round = rounds_[Index(priority)];
  ++flow.reserved;
  ++round.reserved;
  flow.reserved_s += flow.mean_s;
  round.reserved_s += flow.mean_s;
  return flow.mean_s;
}

void FairOrder::ReleaseReservation(ClientAccount* account, Priority priority, double work_s) {
  Flow& flow = account->flows_[Index(priority)];
  Round& round = rounds_[Index(priority)];
  flow.reserved_s = --flow.reserved > 0 ? flow.reserved_s - work_s : 0;
  round.reserved_s = --round.reserved > 0 ? round.reserved_s - work_s : 0;
}

void FairOrder::UpdateScale(ClientAccount* account, double predicted_s, double measured_s) {
  if (predicted_s < kMinMeasurable_s || measured_s < kMinMeasurable_s) return;
  const double ratio = measured_s / predicted_s;
  double& scale = account->scale_;
  if (scale == 0) scale = mean_scale_;
  scale += kSampleWeight * (std::clamp(ratio, 1 / kMaxScale, kMaxScale) - scale);
  mean_scale_ +=
      kSampleWeight * (std::clamp(ratio, 1 / kMaxMeanScale, kMaxMeanScale) - mean_scale_);
}

}  // namespace sap
