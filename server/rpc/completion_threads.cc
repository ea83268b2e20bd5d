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

// A look costs some microseconds on a processor that sleeps, so an idle server has few in a second.
constexpr nanoseconds kLongestWait = milliseconds(320);
// Shorter, what else runs on the machine would show.
constexpr nanoseconds kLoadPeriod = milliseconds(20);
// A lone client that sends its next step when it has the answer to the last leaves a sixth.
constexpr double kNothingToSpare = 0.95;
constexpr double kAtWork = 0.5;
constexpr nanoseconds kShortestStint = kLoadPeriod;
constexpr nanoseconds kLongestStint = milliseconds(1000);

nanoseconds Now() { return std::chrono::steady_clock::now().time_since_epoch(); }

int OwnStatistics() { return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }

double BusyFraction(const ThreadProgress& before, const ThreadProgress& now) {
  return static_cast<double>((now.busy - before.busy).count()) /
         static_cast<double>((now.time - before.time).count());
}

void Take(void* tag, bool ok, std::atomic<uint64_t>* half_steps) {
  // Only this thread writes it.
  const uint64_t count = half_steps->load(std::memory_order_relaxed);
  half_steps->store(count + 1, std::memory_order_relaxed);
  static_cast<CompletionTag*>(tag)->Complete(ok);
  half_steps->store(count + 2, std::memory_order_relaxed);
}

}  // namespace

bool ThreadWatch::NeedsHelp(const ThreadProgress& now) {
  const ThreadProgress before = std::exchange(last_, now);
  if (now.half_steps != before.half_steps) {
    wait_ = kShortestWait;
  } else {
    const bool in_step = now.half_steps % 2 == 1;
    if (in_step || BusyFraction(before, now) > kAtWork) return true;
    wait_ = std::min(2 * wait_, kLongestWait);
  }
  if (now.time - earlier_.time < kLoadPeriod) return false;
  return BusyFraction(std::exchange(earlier_, now), now) > kNothingToSpare;
}

nanoseconds NextStint(nanoseconds last_stint, nanoseconds watched) {
  const bool needed_again = watched < last_stint;
  return needed_again ? std::min(2 * last_stint, kLongestStint) : kShortestStint;
}

// The file begins with the nanoseconds on a processor and those of waiting for one. A kernel that
// does not count them leaves no time to spare: then all threads serve.
ThreadProgress CompletionThreads::Seat::Progress() const {
  const nanoseconds now = Now();
  std::array<char, 64> text{};
  const ssize_t length = pread(statistics, text.data(), text.size(), 0);
  const char* const end = text.data() + std::max<ssize_t>(length, 0);
  int64_t running = 0;
  int64_t waiting = 0;
  const auto first = std::from_chars(text.data(), end, running);
  const bool known = running > 0 && first.ptr != end &&
                     std::from_chars(first.ptr + 1, end, waiting).ec == std::errc();
  return {now, known ? nanoseconds(running + waiting) : now,
          half_steps.load(std::memory_order_relaxed)};
}

CompletionThreads::CompletionThreads(grpc::CompletionQueue* queue, int threads)
    : queue_(queue), seats_(threads) {
  for (size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].thread = std::thread([this, i] {
      if (i == 0) return Serve(&seats_[0]);
      Help(&seats_[i], seats_[i - 1]);
    });
  }
}

CompletionThreads::~CompletionThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  queue_->Shutdown();
  for (Seat& seat : seats_) seat.thread.join();
  for (const Seat& seat : seats_) close(seat.statistics);
}

void CompletionThreads::Serve(Seat* self) {
  self->statistics = OwnStatistics();
  SetServes(true, self);
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) Take(tag, ok, &self->half_steps);
}

void CompletionThreads::Help(Seat* self, const Seat& previous) {
  self->statistics = OwnStatistics();
  nanoseconds stint{0};
  nanoseconds left = Now();
  while (AwaitNeed(previous)) {
    stint = NextStint(stint, Now() - left);
    SetServes(true, self);
    ThreadWatch watch(previous.Progress());
    do {
      if (!ServeFor(stint, self)) return;
    } while (watch.NeedsHelp(previous.Progress()));
    SetServes(false, self);
    left = Now();
  }
}

// False: there will be none, since this ends.
bool CompletionThreads::AwaitNeed(const Seat& previous) {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait(lock, [&] { return ends_ || previous.serves; });
    if (ends_) break;
    ThreadWatch watch(previous.Progress());
    while (!changed_.wait_for(lock, watch.wait(), [&] { return ends_ || !previous.serves; })) {
      if (watch.NeedsHelp(previous.Progress())) return true;
    }
  }
  return false;
}

// False: the queue has been shut down and emptied.
bool CompletionThreads::ServeFor(nanoseconds stint, Seat* self) {
  const nanoseconds until = Now() + stint;
  for (nanoseconds left = stint; left.count() > 0; left = until - Now()) {
    void* tag = nullptr;
    bool ok = false;
    switch (queue_->AsyncNext(&tag, &ok, gpr_time_from_nanos(left.count(), GPR_TIMESPAN))) {
      case grpc::CompletionQueue::SHUTDOWN:
        return false;
      case grpc::CompletionQueue::GOT_EVENT:
        Take(tag, ok, &self->half_steps);
        break;
      case grpc::CompletionQueue::TIMEOUT:
        break;
    }
  }
  return true;
}

void CompletionThreads::SetServes(bool serves, Seat* self) {
  {
    const std::lock_guard lock(mutex_);
    self->serves = serves;
  }
  changed_.notify_all();
}

}  // namespace sap
