#include "solver/parallel/work_sharing_loops.h"

#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "solver/parallel/futex.h"
#include "solver/parallel/spin_pause.h"

namespace sap {
namespace {

using Clock = std::chrono::steady_clock;

// How long a helper stays without work: longer than the serial stretches of a Newton iteration, and
// short against the time slices of other processes.
constexpr std::chrono::microseconds kLinger{500};
// How long an opener spins before it sleeps: longer than the index that another thread is in takes
// in most loops, so that few loops pay for waking it.
constexpr std::chrono::microseconds kSpin{50};
// Between two looks at the clock of a thread that had its processor all the time, there is less.
constexpr std::chrono::microseconds kLongPoll{100};
// Work on a loop that may have been interrupted by another process for long.
constexpr std::chrono::microseconds kLongWork{200};
// Polls between looks at the clock, and before the processor is offered to other threads.
constexpr int kPollsPerLook = 64;
constexpr int kPollsBeforeYield = 1024;
// Open loops of one thread: of islands, fronts, and pieces of a front.
constexpr int kNestedLoops = 4;
constexpr int kMostLoops = 64;

// Time for which this thread has had a processor. A system call of a microsecond.
Clock::duration ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// What happened before HandOver is visible after the TakeOver of the task that it announced. oneTBB
// guarantees that; ThreadSanitizer does not see into oneTBB and needs to be shown.
#if defined(__SANITIZE_THREAD__)
std::atomic<unsigned> handed_over{0};

void HandOver() { handed_over.fetch_add(1, std::memory_order_release); }
void TakeOver() { handed_over.load(std::memory_order_acquire); }
#else
void HandOver() {}
void TakeOver() {}
#endif

constexpr uint64_t kHelpers = (uint64_t{1} << 16) - 1;
constexpr uint64_t kOpen = uint64_t{1} << 16;
constexpr uint64_t kGeneration = uint64_t{1} << 17;

// Indices that are claimed in ascending order.
struct alignas(64) Range {
  std::atomic<int> next{0};
  int end{0};
};

// The loops in whose indices this thread is: those of one arena, a bit for each.
struct Inside {
  const WorkSharingLoops* arena{nullptr};
  uint64_t loops{0};
};
thread_local Inside inside;

}  // namespace

struct alignas(64) WorkSharingLoops::Loop {
  std::atomic<bool> taken{false};  // by the thread that opened it
  // Generation, kOpen, number of helpers inside. One word, so that a helper can enter neither a
  // loop that has been closed nor one that was opened in its place since the helper looked.
  std::atomic<uint64_t> ticket{0};
  Body body{nullptr};
  void* context{nullptr};
  int thread{0};                   // that opened it
  std::atomic<uint64_t> outer{0};  // the loops in whose indices it was opened, a bit for each
  int num_ranges{0};
  std::unique_ptr<Range[]> ranges;  // one per thread
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set `failed`

  // Keeps the first exception, and leaves no index to be claimed.
  void Fail(std::exception_ptr exception) {
    if (failed.exchange(true, std::memory_order_relaxed)) return;
    error = std::move(exception);
    for (int r = 0; r < num_ranges; ++r) {
      ranges[r].next.store(ranges[r].end, std::memory_order_relaxed);
    }
  }
};

// A thread that helps, and how much it did.
class WorkSharingLoops::Helper {
 public:
  Helper(int thread, SharingBalance* balance) : thread_(thread), balance_(balance) {
    BeginsAt(Clock::now());
  }
  ~Helper() { balance_->AddHelp(not_added_); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  int thread() const { return thread_; }

  // Whether it had a processor before that does not matter.
  void BeginsAt(Clock::time_point now) {
    since_ = now;
    processor_time_ = ProcessorTime();
  }

  void Worked(Clock::time_point begin, Clock::time_point end) {
    Clock::duration time = end - begin;
    if (time > kLongWork) {
      const Clock::duration without_processor = end - since_ - (ProcessorTime() - processor_time_);
      time -= std::clamp(without_processor, Clock::duration::zero(), time);
      BeginsAt(end);
    }
    not_added_ += time;
    if (not_added_ > kLongWork) balance_->AddHelp(std::exchange(not_added_, {}));
  }

 private:
  const int thread_;
  SharingBalance* const balance_;
  Clock::time_point since_;
  Clock::duration processor_time_{};  // at since_
  Clock::duration not_added_{};
};

WorkSharingLoops::WorkSharingLoops(int threads, Sharing sharing)
    : threads_(threads),
      size_(std::min(kNestedLoops * threads, kMostLoops)),
      loops_(std::make_unique<Loop[]>(size_)),
      balance_(sharing) {
  for (int i = 0; i < size_; ++i) loops_[i].ranges = std::make_unique<Range[]>(threads);
}

WorkSharingLoops::~WorkSharingLoops() {
  closing_.store(true, std::memory_order_relaxed);
  while (guests_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

WorkSharingLoops::Loop* WorkSharingLoops::Open(int count, Claim claim, int thread, Body body,
                                               void* context) {
  if (!balance_.Shares()) return nullptr;
  for (int i = 0; i < size_; ++i) {
    Loop& loop = loops_[i];
    if (loop.taken.load(std::memory_order_relaxed) ||
        loop.taken.exchange(true, std::memory_order_acquire)) {
      continue;
    }
    loop.body = body;
    loop.context = context;
    loop.thread = thread;
    loop.outer.store(inside.arena == this ? inside.loops : 0, std::memory_order_relaxed);
    loop.failed.store(false, std::memory_order_relaxed);
    loop.num_ranges = claim == Claim::kAscending ? 1 : std::min(count, threads_);
    for (int r = 0; r < loop.num_ranges; ++r) {
      const int64_t begin = static_cast<int64_t>(count) * r / loop.num_ranges;
      const int64_t end = static_cast<int64_t>(count) * (r + 1) / loop.num_ranges;
      loop.ranges[r].next.store(r == 0 ? 1 : static_cast<int>(begin), std::memory_order_relaxed);
      loop.ranges[r].end = static_cast<int>(end);
    }
    loop.ticket.store((loop.ticket.load(std::memory_order_relaxed) + kGeneration) | kOpen,
                      std::memory_order_release);
    open_.fetch_or(Bit(&loop), std::memory_order_seq_cst);
    WakeSleepers();
    return &loop;
  }
  return nullptr;
}

void WorkSharingLoops::Finish(Loop* loop) {
  WorkOn(loop, [&] {
    loop->body(loop->context, 0);
    ClaimIndices(loop, 0);
  });
  loop->ticket.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto done = [&] { return (loop->ticket.load(std::memory_order_seq_cst) & kHelpers) == 0; };
  const auto ready = [&] { return done() || Offers(Bit(loop)); };
  std::optional<Helper> helper;
  while (!done()) {
    if (WaitUntil(ready) == Waited::kAsleep) helper.reset();
    if (!helper && !done()) helper.emplace(loop->thread, &balance_);
    while (helper && HelpOnce(&*helper, Bit(loop))) {
    }
  }
  const std::exception_ptr error = std::exchange(loop->error, nullptr);
  loop->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

// Spins until ready() holds, or sleeps until then; whether it slept. Whatever makes it hold is a
// sequentially consistent write, after which WakeSleepers is called: either that sees the sleeper
// here, or ready() sees the write.
template <typename Ready>
WorkSharingLoops::Waited WorkSharingLoops::WaitUntil(Ready&& ready) {
  const Clock::time_point begin = Clock::now();
  Clock::time_point now = begin;
  for (int polls = 1; now - begin < kSpin; ++polls) {
    if (ready()) return Waited::kAwake;
    SpinPause();
    if (polls % kPollsPerLook == 0) now = Clock::now();
  }
  if (ready()) return Waited::kAwake;
  do {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t epoch = wake_epoch_.load(std::memory_order_seq_cst);
    if (!ready()) FutexWait(&wake_epoch_, epoch);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  } while (!ready());
  now = Clock::now();
  balance_.AddWait(now - begin, now);
  return Waited::kAsleep;
}

void WorkSharingLoops::WakeSleepers() {
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  wake_epoch_.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(&wake_epoch_);
}

// Runs `work` and marks the loop as one without indices left. No exception gets past it: that would
// leave the loop open with a dead context, or the helper counted for ever.
template <typename Work>
void WorkSharingLoops::WorkOn(Loop* loop, Work&& work) {
  const Inside before =
      std::exchange(inside, {this, loop->outer.load(std::memory_order_relaxed) | Bit(loop)});
  try {
    work();
  } catch (...) {
    loop->Fail(std::current_exception());
  }
  inside = before;
  open_.fetch_and(~Bit(loop), std::memory_order_relaxed);
}

// Claims indices until none is left, from range `first` on.
void WorkSharingLoops::ClaimIndices(Loop* loop, int first) {
  for (int r = 0; r < loop->num_ranges; ++r) {
    Range& range = loop->ranges[(first + r) % loop->num_ranges];
    for (int i = range.next.fetch_add(1, std::memory_order_relaxed); i < range.end;
         i = range.next.fetch_add(1, std::memory_order_relaxed)) {
      loop->body(loop->context, i);
    }
  }
}

uint64_t WorkSharingLoops::Bit(const Loop* loop) const {
  return uint64_t{1} << (loop - loops_.get());
}

bool WorkSharingLoops::IsOffered(const Loop& loop, uint64_t ticket, uint64_t outer) const {
  return (ticket & kOpen) != 0 && (loop.outer.load(std::memory_order_relaxed) & outer) == outer;
}

bool WorkSharingLoops::Offers(uint64_t outer) const {
  for (uint64_t open = open_.load(std::memory_order_seq_cst); open != 0; open &= open - 1) {
    const Loop& loop = loops_[std::countr_zero(open)];
    if (IsOffered(loop, loop.ticket.load(std::memory_order_acquire), outer)) return true;
  }
  return false;
}

bool WorkSharingLoops::HelpOnce(Helper* helper, uint64_t outer) {
  for (uint64_t open = open_.load(std::memory_order_acquire); open != 0; open &= open - 1) {
    Loop& loop = loops_[std::countr_zero(open)];
    uint64_t ticket = loop.ticket.load(std::memory_order_acquire);
    if (!IsOffered(loop, ticket, outer) ||
        !loop.ticket.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acquire)) {
      continue;
    }
    const Clock::time_point begin = Clock::now();
    // The first range is that of the thread that opened the loop; the others follow it in turn.
    const int turn = (helper->thread() - loop.thread - 1 + 2 * threads_) % threads_;
    const int first = loop.num_ranges == 1 ? 0 : 1 + turn % (loop.num_ranges - 1);
    WorkOn(&loop, [&] { ClaimIndices(&loop, first); });
    helper->Worked(begin, Clock::now());
    const uint64_t before = loop.ticket.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & kHelpers) == 1) WakeSleepers();
    return true;
  }
  return false;
}

// False if there are `wanted` helpers without another one.
bool WorkSharingLoops::CountHelper(int wanted) {
  int helpers = helpers_.load(std::memory_order_seq_cst);
  while (helpers < wanted) {
    if (helpers_.compare_exchange_weak(helpers, helpers + 1, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool WorkSharingLoops::InviteHelper(int wanted) {
  if (!CountHelper(wanted)) return false;
  guests_.fetch_add(1, std::memory_order_relaxed);
  HandOver();
  return true;
}

void WorkSharingLoops::WithdrawInvitation() {
  helpers_.fetch_sub(1, std::memory_order_relaxed);
  guests_.fetch_sub(1, std::memory_order_release);
}

void WorkSharingLoops::TaskWaits() {
  waiting_tasks_.fetch_add(1, std::memory_order_relaxed);
  HandOver();
}

void WorkSharingLoops::TaskStarts() {
  TakeOver();
  waiting_tasks_.fetch_sub(1, std::memory_order_relaxed);
}

void WorkSharingLoops::Help(int thread) {
  TakeOver();
  Helper helper(thread, &balance_);
  do {
    HelpWhileThereIsWork(&helper);
    helpers_.fetch_sub(1, std::memory_order_seq_cst);
  } while (LeftTooEarly() && CountHelper(threads_ - 1));
  guests_.fetch_sub(1, std::memory_order_release);
}

// A loop may have been opened since the helper last looked, by a thread that still counted on it.
// Either that thread sees that the helper is no longer counted, or the helper sees the open loop
// here: both write before they read, in the one order of sequentially consistent operations.
bool WorkSharingLoops::LeftTooEarly() const {
  return open_.load(std::memory_order_seq_cst) != 0 &&
         waiting_tasks_.load(std::memory_order_relaxed) == 0 &&
         !closing_.load(std::memory_order_relaxed);
}

void WorkSharingLoops::HelpWhileThereIsWork(Helper* helper) {
  Clock::time_point idle_since = Clock::now();
  Clock::time_point last_look = idle_since;
  int polls = 0;
  while (true) {
    if (HelpOnce(helper, /*outer=*/0)) {
      polls = 0;
      continue;
    }
    SpinPause();
    if (polls++ % kPollsPerLook != 0) continue;
    if (waiting_tasks_.load(std::memory_order_relaxed) > 0) return;
    if (closing_.load(std::memory_order_relaxed)) return;
    const Clock::time_point now = Clock::now();
    if (polls == 1) {
      idle_since = now;
    } else if (now - last_look > kLongPoll) {
      helper->BeginsAt(now);
    }
    last_look = now;
    if (now - idle_since > kLinger || !balance_.Shares(now)) return;
    if (polls > kPollsBeforeYield) std::this_thread::yield();
  }
}

}  // namespace sap
