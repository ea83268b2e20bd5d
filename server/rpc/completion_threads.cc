#include "server/rpc/completion_threads.h"

#include <fcntl.h>
#include <grpc/support/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "server/rpc/completion_tag.h"

namespace sap {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A sample costs some microseconds, more if the processor sleeps, so an idle server takes only a
// few per second.
constexpr nanoseconds kMaxPollInterval = milliseconds(320);
// Averaging period of the load. Over a shorter period other processes would show as load.
constexpr nanoseconds kLoadPeriod = milliseconds(20);
// A single client that sends each step after the answer to the previous one leaves a sixth of the
// time idle, so it stays below this.
constexpr double kSaturatedFraction = 0.95;
constexpr double kReadingFraction = 0.5;
constexpr nanoseconds kMinAssistTime = kLoadPeriod;
constexpr nanoseconds kMaxAssistTime = milliseconds(1000);

nanoseconds Now() { return std::chrono::steady_clock::now().time_since_epoch(); }

int OpenSchedulerStatistics() { return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }

double BusyFraction(const ThreadSample& before, const ThreadSample& now) {
  return static_cast<double>((now.busy - before.busy).count()) /
         static_cast<double>((now.time - before.time).count());
}

void RunHandler(void* tag, bool ok, std::atomic<uint64_t>* transitions) {
  // Only this thread writes the counter.
  const uint64_t count = transitions->load(std::memory_order_relaxed);
  transitions->store(count + 1, std::memory_order_relaxed);
  static_cast<CompletionTag*>(tag)->Complete(ok);
  transitions->store(count + 2, std::memory_order_relaxed);
}

// False if the queue is shut down and drained.
bool PollFor(nanoseconds time, grpc::CompletionQueue* queue) {
  const nanoseconds until = Now() + time;
  for (nanoseconds left = time; left.count() > 0; left = until - Now()) {
    void* tag = nullptr;
    bool ok = false;
    switch (queue->AsyncNext(&tag, &ok, gpr_time_from_nanos(left.count(), GPR_TIMESPAN))) {
      case grpc::CompletionQueue::SHUTDOWN:
        return false;
      case grpc::CompletionQueue::GOT_EVENT:
        static_cast<CompletionTag*>(tag)->Complete(ok);
        break;
      case grpc::CompletionQueue::TIMEOUT:
        break;
    }
  }
  return true;
}

}  // namespace

bool SaturationDetector::IsSaturated(const ThreadSample& now) {
  const ThreadSample before = std::exchange(last_, now);
  if (now.transitions != before.transitions) {
    poll_interval_ = kMinPollInterval;
  } else {
    const bool in_handler = now.transitions % 2 == 1;
    if (in_handler || BusyFraction(before, now) > kReadingFraction) return true;
    poll_interval_ = std::min(2 * poll_interval_, kMaxPollInterval);
  }
  if (now.time - period_start_.time < kLoadPeriod) return false;
  return BusyFraction(std::exchange(period_start_, now), now) > kSaturatedFraction;
}

nanoseconds NextAssistTime(nanoseconds last_assist_time, nanoseconds unsaturated_for) {
  const bool saturated_again = unsaturated_for < last_assist_time;
  return saturated_again ? std::min(2 * last_assist_time, kMaxAssistTime) : kMinAssistTime;
}

// schedstat begins with the nanoseconds spent running and waiting for a processor. If the kernel
// does not count them, the thread is reported as always busy, so all threads poll.
ThreadSample CompletionThreads::Worker::Sample() const {
  const nanoseconds now = Now();
  std::array<char, 64> text{};
  const ssize_t length = pread(schedstat_fd, text.data(), text.size(), 0);
  const char* const end = text.data() + std::max<ssize_t>(length, 0);
  int64_t running = 0;
  int64_t waiting = 0;
  const auto first = std::from_chars(text.data(), end, running);
  const bool known = running > 0 && first.ptr != end &&
                     std::from_chars(first.ptr + 1, end, waiting).ec == std::errc();
  return {now, known ? nanoseconds(running + waiting) : now,
          transitions.load(std::memory_order_relaxed)};
}

CompletionThreads::CompletionThreads(std::vector<grpc::CompletionQueue*> queues, bool assisted)
    : workers_(queues.size()), ready_(static_cast<std::ptrdiff_t>(queues.size())) {
  for (size_t i = 0; i < queues.size(); ++i) {
    workers_[i].queue = queues[i];
    workers_[i].thread = std::thread([this, i] { Poll(&workers_[i]); });
  }
  if (assisted) assistant_ = std::thread([this] { Assist(); });
}

CompletionThreads::~CompletionThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  for (const Worker& worker : workers_) worker.queue->Shutdown();
  for (Worker& worker : workers_) worker.thread.join();
  if (assistant_.joinable()) assistant_.join();
  for (const Worker& worker : workers_) close(worker.schedstat_fd);
}

void CompletionThreads::Poll(Worker* self) {
  self->schedstat_fd = OpenSchedulerStatistics();
  ready_.count_down();
  void* tag = nullptr;
  bool ok = false;
  while (self->queue->Next(&tag, &ok)) RunHandler(tag, ok, &self->transitions);
}

void CompletionThreads::Assist() {
  ready_.wait();
  nanoseconds assist_time{0};
  nanoseconds stopped_at = Now();
  while (const Worker* const saturated = AwaitSaturation()) {
    assist_time = NextAssistTime(assist_time, Now() - stopped_at);
    SaturationDetector detector(saturated->Sample());
    do {
      if (!PollFor(assist_time, saturated->queue)) return;
    } while (detector.IsSaturated(saturated->Sample()));
    stopped_at = Now();
  }
}

// Null if this object is being destroyed.
const CompletionThreads::Worker* CompletionThreads::AwaitSaturation() {
  std::vector<SaturationDetector> detectors;
  for (const Worker& worker : workers_) detectors.emplace_back(worker.Sample());
  std::unique_lock lock(mutex_);
  for (nanoseconds interval = detectors.front().poll_interval();
       !stop_.wait_for(lock, interval, [this] { return stopping_; });) {
    interval = kMaxPollInterval;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (detectors[i].IsSaturated(workers_[i].Sample())) return &workers_[i];
      interval = std::min(interval, detectors[i].poll_interval());
    }
  }
  return nullptr;
}

}  // namespace sap
