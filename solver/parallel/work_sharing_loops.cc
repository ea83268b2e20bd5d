#include "solver/parallel/work_sharing_loops.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "solver/parallel/spin_pause.h"

namespace sap {
namespace {

using Clock = std::chrono::steady_clock;

// How long a helper stays without work: longer than the serial stretches of a Newton iteration, and
// short against the time slices of other processes.
constexpr std::chrono::microseconds kLinger{500};
// Polls between looks at the clock, and before the processor is offered to other threads.
constexpr int kPollsPerLook = 64;
constexpr int kPollsBeforeYield = 1024;
// Open loops of one thread: of islands, fronts, and pieces of a front.
constexpr int kNestedLoops = 4;
constexpr int kMostLoops = 64;

// Polls until done() holds.
template <typename Done>
void SpinUntil(Done&& done) {
  for (int polls = 1; !done(); ++polls) {
    SpinPause();
    if (polls % kPollsBeforeYield == 0) std::this_thread::yield();
  }
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

WorkSharingLoops::WorkSharingLoops(int threads)
    : threads_(threads),
      size_(std::min(kNestedLoops * threads, kMostLoops)),
      loops_(std::make_unique<Loop[]>(size_)) {
  for (int i = 0; i < size_; ++i) loops_[i].ranges = std::make_unique<Range[]>(threads);
}

WorkSharingLoops::~WorkSharingLoops() {
  closing_.store(true, std::memory_order_relaxed);
  SpinUntil([&] { return guests_.load(std::memory_order_acquire) == 0; });
}

WorkSharingLoops::Loop* WorkSharingLoops::Open(int count, Claim claim, int thread, Body body,
                                               void* context) {
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
  SpinUntil([&] {
    if ((loop->ticket.load(std::memory_order_acquire) & kHelpers) == 0) return true;
    HelpOnce(loop->thread, Bit(loop));
    return false;
  });
  const std::exception_ptr error = std::exchange(loop->error, nullptr);
  loop->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
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

bool WorkSharingLoops::HelpOnce(int thread, uint64_t outer) {
  for (uint64_t open = open_.load(std::memory_order_acquire); open != 0; open &= open - 1) {
    Loop& loop = loops_[std::countr_zero(open)];
    uint64_t ticket = loop.ticket.load(std::memory_order_acquire);
    if ((ticket & kOpen) == 0 || (loop.outer.load(std::memory_order_relaxed) & outer) != outer ||
        !loop.ticket.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acquire)) {
      continue;
    }
    // The first range is that of the thread that opened the loop; the others follow it in turn.
    const int turn = (thread - loop.thread - 1 + 2 * threads_) % threads_;
    const int first = loop.num_ranges == 1 ? 0 : 1 + turn % (loop.num_ranges - 1);
    WorkOn(&loop, [&] { ClaimIndices(&loop, first); });
    loop.ticket.fetch_sub(1, std::memory_order_release);
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
  do {
    HelpWhileThereIsWork(thread);
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

void WorkSharingLoops::HelpWhileThereIsWork(int thread) {
  Clock::time_point idle_since = Clock::now();
  int polls = 0;
  while (true) {
    if (HelpOnce(thread, /*outer=*/0)) {
      polls = 0;
      continue;
    }
    SpinPause();
    if (polls++ % kPollsPerLook != 0) continue;
    if (waiting_tasks_.load(std::memory_order_relaxed) > 0) return;
    if (closing_.load(std::memory_order_relaxed)) return;
    const Clock::time_point now = Clock::now();
    if (polls == 1) idle_since = now;
    if (now - idle_since > kLinger) return;
    if (polls > kPollsBeforeYield) std::this_thread::yield();
  }
}

}  // namespace sap
