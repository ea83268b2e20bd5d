#include "solver/parallel/work_sharing_loops.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <exception>
#include <limits>
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
// Threads that start at ranges of their own.
constexpr int kMostRanks = 64;

// Writes before HandOver are visible after the TakeOver of the task that it announced. oneTBB
// guarantees that; ThreadSanitizer does not see into oneTBB and needs to be shown.
#if defined(__SANITIZE_THREAD__)
std::atomic<unsigned> handed_over{0};

void HandOver() { handed_over.fetch_add(1, std::memory_order_release); }
void TakeOver() { handed_over.load(std::memory_order_acquire); }
#else
void HandOver() {}
void TakeOver() {}
#endif

// A loop that is open. The rest of its ticket tells apart the loops that have the same place one
// after another: their generation.
constexpr uint64_t kOpen = 1;
constexpr uint64_t kGeneration = 2;

// A number of indices, and the generation that it belongs to: the number means nothing to another.
constexpr int kCountBits = 20;
constexpr uint64_t kMostCount = (uint64_t{1} << kCountBits) - 1;

constexpr uint64_t Tagged(uint64_t ticket, int count) {
  return (ticket / kGeneration) << kCountBits | static_cast<uint64_t>(count);
}
constexpr bool BelongsTo(uint64_t tagged, uint64_t ticket) {
  return (tagged ^ Tagged(ticket, 0)) <= kMostCount;
}
constexpr int CountOf(uint64_t tagged) { return static_cast<int>(tagged & kMostCount); }

// The part of a loop's indices with which one thread starts: a cache line of its own. Who opens a
// loop does not write to it, so that it stays with the core that has worked on it.
struct alignas(64) Range {
  std::atomic<uint64_t> left{0};  // to be claimed; of another generation: all
  std::atomic<uint64_t> done{0};  // of another generation: none
};

constexpr int kNoRank = 255;

// The loops of one arena that this thread is working on an index of, a bit for each.
struct Inside {
  const WorkSharingLoops* arena{nullptr};
  uint64_t loops{0};
  int rank{kNoRank};  // of a helper
};
thread_local Inside inside;

}  // namespace

Clock::duration LoopClocks::ProcessorTimeOfThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// How the indices of a loop are divided into ranges. Aligned by its size: an atomic of less is a
// call into libatomic where Clang compiles it.
struct alignas(8) WorkSharingLoops::Shape {
  int count;
  uint16_t num_ranges;
  uint8_t opener;  // its rank
  bool ascending;

  int Begin(int range) const {
    return static_cast<int>(static_cast<int64_t>(count) * range / num_ranges);
  }
  int Size(int range) const {
    return ascending ? (count - range + num_ranges - 1) / num_ranges
                     : Begin(range + 1) - Begin(range);
  }
  int Index(int range, int position) const {
    return ascending ? range + position * num_ranges : Begin(range) + position;
  }
};

struct alignas(64) WorkSharingLoops::Loop {
  // A helper reads these, and then the ticket again: where that is the same, they belong to it.
  std::atomic<uint64_t> ticket{0};
  std::atomic<uint64_t> outer{0};  // loops within whose indices it was opened, one bit each
  std::atomic<Shape> shape{};
  // These once it has claimed an index: the loop then lasts until that is done.
  Body body{nullptr};
  void* context{nullptr};
  std::unique_ptr<Range[]> ranges;  // one per thread

  alignas(64) std::atomic<bool> taken{false};  // by the thread that opened it
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set `failed`

  // Claims at most `most` of a range. Returns how many were left before, 0 once the loop has ended.
  int Claim(uint64_t of, const Shape& in, int range, int most) {
    std::atomic<uint64_t>& left = ranges[range].left;
    uint64_t before = left.load(std::memory_order_acquire);
    while (true) {
      // While the loop is open, another generation is one before: a later one begins after this one
      // has been claimed to its end, by which a stale `before` no longer is what is replaced.
      const bool untouched = !BelongsTo(before, of);
      if (untouched && ticket.load(std::memory_order_acquire) != of) return 0;
      const int count = untouched ? in.Size(range) : CountOf(before);
      if (count == 0) return 0;
      if (left.compare_exchange_weak(before, Tagged(of, count - std::min(count, most)),
                                     std::memory_order_acq_rel, std::memory_order_acquire)) {
        return count;
      }
    }
  }

  void AddDone(uint64_t of, int range, int count) {
    std::atomic<uint64_t>& done = ranges[range].done;
    uint64_t before = done.load(std::memory_order_relaxed);
    while (!done.compare_exchange_weak(before,
                                       BelongsTo(before, of) ? before + count : Tagged(of, count),
                                       std::memory_order_seq_cst, std::memory_order_relaxed)) {
    }
  }

  bool IsDone(uint64_t of, const Shape& in, int range) const {
    return ranges[range].done.load(std::memory_order_seq_cst) == Tagged(of, in.Size(range));
  }

  // Keeps the first exception, and leaves no index to be claimed: none is when this returns.
  void Fail(uint64_t of, const Shape& in, std::exception_ptr exception) {
    if (!failed.exchange(true, std::memory_order_relaxed)) error = std::move(exception);
    for (int range = 0; range < in.num_ranges; ++range) {
      const int left_out = Claim(of, in, range, in.count);
      if (left_out > 0) AddDone(of, range, left_out);
    }
  }
};

// A thread that helps: which loops it need not look at again, and how much it did.
class WorkSharingLoops::Helper {
 public:
  Helper(int rank, const LoopClocks& clocks, SharingBalance* balance)
      : rank_(rank), clocks_(clocks), balance_(balance) {}
  ~Helper() { Pause(); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // The range of the loop to begin with. The first is the opener's; the others follow in turn.
  int FirstRange(const Shape& shape, int threads) const {
    return 1 + Turn(shape, threads) % (shape.num_ranges - 1);
  }
  // Whether to join the loop at this look. Where it has fewer ranges than there are threads, those
  // whose turn it is come first, and the others only if it lasts.
  bool Joins(int place, uint64_t ticket, const Shape& shape, int threads) {
    Seen& seen = seen_[place];
    if (seen.ticket != ticket) seen = {ticket, 0};
    return Turn(shape, threads) < shape.num_ranges - 1 || ++seen.looks > kLooksBeforeJoining;
  }
  // It has no index left for this thread.
  void HasLeft(int place, uint64_t ticket) { seen_[place] = {ticket, kDone}; }
  bool HasLeftBefore(int place, uint64_t ticket) const {
    return seen_[place].ticket == ticket && seen_[place].looks == kDone;
  }

  void Worked(Clock::time_point begin, Clock::time_point end) {
    Clock::duration time = end - begin;
    if (time > kLongWork && begun_) {
      const Clock::duration without_processor =
          end - since_ - (clocks_.processor_time() - processor_time_);
      time -= std::clamp(without_processor, Clock::duration::zero(), time);
      BeginsAt(end);
    }
    not_added_ += time;
    if (not_added_ > kLongWork) balance_->AddHelp(std::exchange(not_added_, {}));
  }

  // Whether it has a processor from here on matters.
  void BeginsAt(Clock::time_point now) {
    begun_ = true;
    since_ = now;
    processor_time_ = clocks_.processor_time();
  }
  bool has_begun() const { return begun_; }
  void Pause() {
    begun_ = false;
    if (not_added_ > Clock::duration::zero()) balance_->AddHelp(std::exchange(not_added_, {}));
  }

 private:
  static constexpr int kLooksBeforeJoining = 64;  // some 3 us
  static constexpr int kDone = std::numeric_limits<int>::max();

  // After the opener, in the order of ranks. A thread without rank is the one that opened the first
  // of the loops, and comes last.
  int Turn(const Shape& shape, int threads) const {
    const int rank = rank_ == kNoRank ? threads - 1 : rank_;
    return shape.opener == kNoRank ? rank : (rank - shape.opener - 1 + 2 * threads) % threads;
  }

  struct Seen {
    uint64_t ticket{0};
    int looks{0};
  };

  const int rank_;
  const LoopClocks& clocks_;
  SharingBalance* const balance_;
  std::array<Seen, kMostLoops> seen_{};
  bool begun_{false};
  Clock::time_point since_;
  Clock::duration processor_time_{};  // at since_
  Clock::duration not_added_{};
};

WorkSharingLoops::WorkSharingLoops(int threads, Sharing sharing, const LoopClocks& clocks)
    : clocks_(clocks),
      threads_(threads),
      size_(std::min(kNestedLoops * threads, kMostLoops)),
      loops_(std::make_unique<Loop[]>(size_)),
      balance_(sharing) {
  for (int i = 0; i < size_; ++i) loops_[i].ranges = std::make_unique<Range[]>(threads);
}

WorkSharingLoops::~WorkSharingLoops() {
  closing_.store(true, std::memory_order_relaxed);
  while (guests_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

WorkSharingLoops::Loop* WorkSharingLoops::Open(int count, Claim claim, Body body, void* context) {
  if (count > static_cast<int>(kMostCount) || !balance_.Shares()) return nullptr;
  for (int i = 0; i < size_; ++i) {
    Loop& loop = loops_[i];
    if (loop.taken.load(std::memory_order_relaxed) ||
        loop.taken.exchange(true, std::memory_order_acquire)) {
      continue;
    }
    const bool is_inside = inside.arena == this;
    const Shape shape{.count = count,
                      .num_ranges = static_cast<uint16_t>(std::min(count, threads_)),
                      .opener = static_cast<uint8_t>(is_inside ? inside.rank : kNoRank),
                      .ascending = claim == Claim::kAscending};
    const uint64_t ticket = (loop.ticket.load(std::memory_order_relaxed) + kGeneration) | kOpen;
    loop.outer.store(is_inside ? inside.loops : 0, std::memory_order_release);
    loop.shape.store(shape, std::memory_order_release);
    loop.body = body;
    loop.context = context;
    loop.failed.store(false, std::memory_order_relaxed);
    loop.ranges[0].left.store(Tagged(ticket, shape.Size(0) - 1), std::memory_order_release);
    loop.ticket.store(ticket, std::memory_order_release);
    open_.fetch_or(Bit(&loop), std::memory_order_seq_cst);
    WakeSleepers();
    return &loop;
  }
  return nullptr;
}

void WorkSharingLoops::Finish(Loop* loop) {
  const uint64_t ticket = loop->ticket.load(std::memory_order_relaxed);
  const Shape shape = loop->shape.load(std::memory_order_relaxed);
  WorkOn(loop, ticket, shape, /*range=*/0, /*index=*/0);
  loop->ticket.store(ticket & ~kOpen, std::memory_order_release);
  open_.fetch_and(~Bit(loop), std::memory_order_relaxed);

  int num_done = 0;  // ranges
  const auto done = [&] {
    while (num_done < shape.num_ranges && loop->IsDone(ticket, shape, num_done)) ++num_done;
    return num_done == shape.num_ranges;
  };
  if (!done()) {
    Helper helper(inside.arena == this ? inside.rank : kNoRank, clocks_, &balance_);
    const auto ready = [&] { return done() || Offers(helper, Bit(loop)); };
    while (!done()) {
      if (WaitUntil(ready) == Waited::kAsleep) helper.Pause();
      while (HelpOnce(&helper, Bit(loop))) {
      }
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
  const Clock::time_point begin = clocks_.now();
  Clock::time_point now = begin;
  for (int polls = 1; now - begin < kSpin; ++polls) {
    if (ready()) return Waited::kAwake;
    SpinPause();
    if (polls % kPollsPerLook == 0) now = clocks_.now();
  }
  if (ready()) return Waited::kAwake;
  do {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t epoch = wake_epoch_.load(std::memory_order_seq_cst);
    if (!ready()) FutexWait(&wake_epoch_, epoch);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  } while (!ready());
  now = clocks_.now();
  balance_.AddWait(now - begin, now);
  return Waited::kAsleep;
}

void WorkSharingLoops::WakeSleepers() {
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  wake_epoch_.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(&wake_epoch_);
}

// Works on indices of the loop until none is left to be claimed, from `range` on: on `index`, which
// this thread has already, if that is not negative. Whether there was one. No exception gets past
// it: that would leave the loop open with a dead context.
bool WorkSharingLoops::WorkOn(Loop* loop, uint64_t ticket, const Shape& shape, int range,
                              int index) {
  const Inside before =
      std::exchange(inside, {this, loop->outer.load(std::memory_order_relaxed) | Bit(loop),
                             inside.arena == this ? inside.rank : kNoRank});
  const auto claim = [&](int from) {
    const int left = loop->Claim(ticket, shape, from, 1);
    return left > 0 ? shape.Index(from, shape.Size(from) - left) : -1;
  };
  bool worked = false;
  bool fails = false;
  for (int i = 0; i < shape.num_ranges && !fails; ++i) {
    int done = 0;
    if (index < 0) index = claim(range);
    try {
      for (; index >= 0; index = claim(range)) {
        ++done;
        loop->body(loop->context, index);
      }
    } catch (...) {
      loop->Fail(ticket, shape, std::current_exception());
      fails = true;
    }
    if (done > 0) loop->AddDone(ticket, range, done);
    worked = worked || done > 0;
    range = range + 1 < shape.num_ranges ? range + 1 : 0;
  }
  inside = before;
  return worked;
}

uint64_t WorkSharingLoops::Bit(const Loop* loop) const {
  return uint64_t{1} << (loop - loops_.get());
}

bool WorkSharingLoops::IsOffered(const Helper& helper, const Loop& loop, uint64_t ticket,
                                 uint64_t outer) const {
  return (ticket & kOpen) != 0 &&
         !helper.HasLeftBefore(static_cast<int>(&loop - loops_.get()), ticket) &&
         (loop.outer.load(std::memory_order_acquire) & outer) == outer;
}

bool WorkSharingLoops::Offers(const Helper& helper, uint64_t outer) const {
  for (uint64_t open = open_.load(std::memory_order_seq_cst); open != 0; open &= open - 1) {
    const Loop& loop = loops_[std::countr_zero(open)];
    if (IsOffered(helper, loop, loop.ticket.load(std::memory_order_acquire), outer)) return true;
  }
  return false;
}

bool WorkSharingLoops::HelpOnce(Helper* helper, uint64_t outer) {
  for (uint64_t open = open_.load(std::memory_order_acquire); open != 0; open &= open - 1) {
    const int place = std::countr_zero(open);
    Loop& loop = loops_[place];
    const uint64_t ticket = loop.ticket.load(std::memory_order_acquire);
    if (!IsOffered(*helper, loop, ticket, outer)) continue;
    const Shape shape = loop.shape.load(std::memory_order_acquire);
    // Another loop may be in its place since.
    if (loop.ticket.load(std::memory_order_acquire) != ticket) continue;
    if (!helper->Joins(place, ticket, shape, threads_)) continue;
    const Clock::time_point begin = clocks_.now();
    if (!helper->has_begun()) helper->BeginsAt(begin);
    const bool worked =
        WorkOn(&loop, ticket, shape, helper->FirstRange(shape, threads_), /*index=*/-1);
    helper->HasLeft(place, ticket);
    if (!worked) continue;
    helper->Worked(begin, clocks_.now());
    WakeSleepers();
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

// Returns the lowest rank that is free: helping threads have consecutive ranks, and the range of a
// thread in the next loop is the one that it has in its cache.
int WorkSharingLoops::TakeRank() {
  uint64_t taken = ranks_.load(std::memory_order_relaxed);
  while (true) {
    const int rank = std::countr_one(taken);
    if (rank == kMostRanks) return kNoRank;
    if (ranks_.compare_exchange_weak(taken, taken | uint64_t{1} << rank,
                                     std::memory_order_relaxed)) {
      return rank;
    }
  }
}

void WorkSharingLoops::ReturnRank(int rank) {
  if (rank != kNoRank) ranks_.fetch_and(~(uint64_t{1} << rank), std::memory_order_relaxed);
}

void WorkSharingLoops::Help() {
  TakeOver();
  const Inside before = std::exchange(inside, {this, 0, TakeRank()});
  {
    Helper helper(inside.rank, clocks_, &balance_);
    do {
      HelpWhileThereIsWork(&helper);
      helpers_.fetch_sub(1, std::memory_order_seq_cst);
    } while (LeftTooEarly(helper) && CountHelper(threads_ - 1));
  }
  ReturnRank(inside.rank);
  inside = before;
  guests_.fetch_sub(1, std::memory_order_release);
}

// A loop may have been opened since the helper last looked, by a thread that still counted on it.
// Either that thread sees that the helper is no longer counted, or the helper sees the open loop
// here: both write before they read, in the one order of sequentially consistent operations.
bool WorkSharingLoops::LeftTooEarly(const Helper& helper) const {
  return Offers(helper, /*outer=*/0) && waiting_tasks_.load(std::memory_order_relaxed) == 0 &&
         !closing_.load(std::memory_order_relaxed);
}

void WorkSharingLoops::HelpWhileThereIsWork(Helper* helper) {
  Clock::time_point idle_since = clocks_.now();
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
    const Clock::time_point now = clocks_.now();
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
