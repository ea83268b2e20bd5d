#include "server/scheduling/work_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace sap {
namespace {

// Work that each client may start in a round before the next one's turn.
constexpr double kQuantum_s = 1e-3;
// How much each task counts in the ratio of measured to predicted time, and what is too short to
// be measured.
constexpr double kWeightOfLast = 0.05;
constexpr double kShortest_s = 20e-6;

// How much of the longest wait a task may be predicted to wait: predictions are not exact, and one
// that expires has been let in for nothing.
constexpr double kLetIn = 0.8;

constexpr int Index(Priority priority) { return static_cast<int>(priority); }

ServiceError TooLong(const std::string& what, double retry_after_s) {
  ServiceError error{ServiceCode::kResourceExhausted, what + "; retry later", ""};
  error.reason = "QUEUE_TIME";
  error.retry_after_s = retry_after_s;
  return error;
}

// The calling thread, for good: without rights no thread can undo it. Linux has it per thread.
void LowerPriority(int nice) {
  thread_local int is = 0;
  if (is == nice) return;
  is = nice;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);  // a wish
}

std::string Seconds(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

}  // namespace

WorkQueue::~WorkQueue() {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    left_.wait(lock, [this] { return workers_ == 0; });
  }
  alone_wake_.notify_all();
  if (alone_.joinable()) alone_.join();
}

ServiceStatus WorkQueue::Push(QueuedTask* task) {
  const std::lock_guard lock(mutex_);
  if (!task->preadmitted) {
    ServiceStatus checked = CheckWaitLocked(*task->account, task->priority);
    if (!checked) return checked;
  }
  task->queued = Clock::now();
  Append(task);
  if (workers_ < arena_->num_threads()) {
    Start();
  } else if (task->priority == Priority::kHigh && high_running_ == 0 && !alone_busy_) {
    StartAlone();
  }
  return {};
}

ServiceStatus WorkQueue::CheckWait(const ClientAccount& account, Priority priority) const {
  const std::lock_guard lock(mutex_);
  return CheckWaitLocked(account, priority);
}

ServiceStatus WorkQueue::CheckWaitLocked(const ClientAccount& account, Priority priority) const {
  const double wait_s = PredictedWait(account, priority);
  if (wait_s <= kLetIn * timeout_s_) return {};
  return tl::unexpected(
      TooLong("it would wait for longer than the limit of " + Seconds(timeout_s_), wait_s / 4));
}

tl::expected<WorkQueue::Expected, ServiceError> WorkQueue::Expect(ClientAccount* account,
                                                                  Priority priority) {
  const std::lock_guard lock(mutex_);
  if (ServiceStatus checked = CheckWaitLocked(*account, priority); !checked) {
    return tl::unexpected(checked.error());
  }
  Flow& flow = account->flows_[Index(priority)];
  Round& round = rounds_[Index(priority)];
  ++flow.expected;
  ++round.expected;
  flow.expected_s += flow.mean_s;
  round.expected_s += flow.mean_s;
  return Expected{priority, flow.mean_s};
}

void WorkQueue::Arrived(ClientAccount* account, const Expected& expected) {
  const std::lock_guard lock(mutex_);
  Flow& flow = account->flows_[Index(expected.priority)];
  Round& round = rounds_[Index(expected.priority)];
  flow.expected_s = --flow.expected > 0 ? flow.expected_s - expected.work_s : 0;
  round.expected_s = --round.expected > 0 ? round.expected_s - expected.work_s : 0;
}

ServiceError WorkQueue::Expired() const {
  return TooLong("it has waited for the limit of " + Seconds(timeout_s_), timeout_s_ / 4);
}

int WorkQueue::queued() const {
  const std::lock_guard lock(mutex_);
  return rounds_[0].tasks + rounds_[1].tasks;
}

int WorkQueue::running() const {
  const std::lock_guard lock(mutex_);
  return workers_ + (alone_busy_ ? 1 : 0);
}

// Until a task of this client would start, if it has its share and no others come: the others do
// as much in each round as this client, or all they have.
double WorkQueue::PredictedWait(const ClientAccount& account, Priority priority) const {
  const Round& high = rounds_[Index(Priority::kHigh)];
  const Round& round = rounds_[Index(priority)];
  const Flow& flow = account.flows_[Index(priority)];
  const double own_s = flow.work_s + flow.expected_s;
  const double all_s = round.work_s + round.expected_s;
  double ahead_s = std::min(all_s, own_s * std::max(1, round.flows));
  if (priority == Priority::kNormal) ahead_s += high.work_s;
  // What runs counts in full: its end is not known, and a task that expires was let in for nothing.
  if (own_s > 0) ahead_s += running_s_;
  return scale_ * ahead_s / arena_->num_threads();
}

void WorkQueue::Append(QueuedTask* task) {
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
  flow.mean_s += kWeightOfLast * (task->work_s - flow.mean_s);
  round.work_s += task->work_s;
  ++round.tasks;
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

QueuedTask* WorkQueue::PopNext() {
  for (Round& round : rounds_) {
    if (QueuedTask* task = Pop(&round)) return task;
  }
  return nullptr;
}

QueuedTask* WorkQueue::Pop(Round* round) {
  if (round->last == nullptr) return nullptr;
  // At most once around: then a new round starts in which somebody has enough.
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

// As many quanta at once as it takes for somebody's next task.
void WorkQueue::StartRound(Round* round) {
  double quanta = std::numeric_limits<double>::infinity();
  Flow* flow = round->last;
  for (int i = 0; i < round->flows; ++i, flow = flow->next) {
    quanta = std::min(quanta, std::ceil((flow->first->work_s - flow->credit_s) / kQuantum_s));
  }
  // One more than needed where round-off would leave it just short.
  for (int i = 0; i < round->flows; ++i, flow = flow->next) {
    flow->credit_s += kQuantum_s * (quanta + 1);
  }
}

void WorkQueue::Start() {
  arena_->Enqueue([](void* queue) noexcept { static_cast<WorkQueue*>(queue)->RunOnArena(); }, this);
  ++workers_;
}

void WorkQueue::StartAlone() {
  if (!alone_.joinable()) alone_ = std::thread([this] { RunAlone(); });
  alone_wake_.notify_one();
}

void WorkQueue::RunOnArena() {
  LowerPriority(nice_);
  std::unique_lock lock(mutex_);
  while (QueuedTask* task = PopNext()) Run(task, Turn::kOnArena, &lock);
  // Under the lock: once it is free, the queue may go.
  if (--workers_ == 0) left_.notify_all();
}

void WorkQueue::RunAlone() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    QueuedTask* task = high_running_ == 0 ? Pop(rounds_.data()) : nullptr;
    if (task == nullptr) {
      alone_wake_.wait(lock);
      continue;
    }
    alone_busy_ = true;
    Run(task, Turn::kReservedThread, &lock);
    alone_busy_ = false;
  }
}

void WorkQueue::Run(QueuedTask* task, Turn turn, std::unique_lock<std::mutex>* lock) {
  const bool high = task->priority == Priority::kHigh;
  const double work_s = task->work_s;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  if (high) ++high_running_;
  if (turn == Turn::kOnArena) running_s_ += work_s;
  lock->unlock();
  const Clock::time_point start = Clock::now();
  const std::chrono::duration<double> waited = start - task->queued;
  const bool expired = !task->preadmitted && waited.count() > timeout_s_;
  task->run(task->context, expired ? Turn::kExpired : turn);  // the task may be gone after this
  const std::chrono::duration<double> took = Clock::now() - start;
  lock->lock();
  if (high) --high_running_;
  if (turn == Turn::kOnArena) running_s_ = workers_ > 1 ? running_s_ - work_s : 0;
  if (!expired) Learn(work_s, took.count());
}

void WorkQueue::Learn(double predicted_s, double measured_s) {
  if (predicted_s < kShortest_s || measured_s < kShortest_s) return;
  const double ratio = std::clamp(measured_s / predicted_s, 0.01, 100.0);
  scale_ += kWeightOfLast * (ratio - scale_);
}

}  // namespace sap
