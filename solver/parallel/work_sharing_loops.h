// Work-sharing scheduler for nested parallel loops.
//
// A thread opens a loop, works on it, and is joined by helper threads. Opening, joining and closing
// take a few atomic operations and no system call, so that loops of some microseconds are worth
// sharing. Helpers that find no open loop spin, then yield, for at most 500 us: between two loops
// of a solve there is often less time than it takes to wake a thread.
//
// A line of memory that many cores write goes from one to the next, a tenth of a microsecond each
// time: sixteen helpers that count themselves in and out cost a loop more than five microseconds.
// So a loop has as many ranges of indices as threads, a line each. A thread claims indices of its
// own range, then of others that have some left, and counts there what it has done. Nothing else is
// written by a helper; what the opener has written is read by all at the same time. Ranges are not
// set up for a loop: what they hold is tagged with the loop that it is of, and a range of an older
// loop is one of which nothing is claimed.
//
// The opener waits only for indices that others have claimed and not done. While it waits, it helps
// with loops that were opened within indices of its own loop, and with no others: those are what it
// waits for, and what their bodies use of a thread is not in use by then. It spins for 50 us, then
// sleeps until its loop is done or such a loop is opened: a helper that is preempted takes a time
// slice to come back, and who has slept meanwhile is scheduled before who has spun.
//
// On cores that other processes use, a helper that is preempted between indices delays no loop, but
// one within an index does. Where that costs more than it gains, no loop is opened for a while
// (sharing_balance.h).
//
// An exception of a body ends its loop only: indices that have not begun are left out, and the
// opener gets the exception that came first once all that have begun are done.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "solver/parallel/sharing_balance.h"

namespace sap {

// Clocks that loops read, which tests replace.
struct LoopClocks {
  std::chrono::steady_clock::time_point (*now)() = std::chrono::steady_clock::now;
  // Time for which the calling thread has had a processor. A system call of a microsecond.
  std::chrono::steady_clock::duration (*processor_time)() = ProcessorTimeOfThread;

  static std::chrono::steady_clock::duration ProcessorTimeOfThread();
};

class WorkSharingLoops {
 public:
  using Body = void (*)(void* context, int index);
  struct Loop;

  // How indices are claimed.
  enum class Claim : unsigned char {
    kAscending,   // ranges are dealt out in turn: tasks of unlike size, the largest first
    kByNeighbors  // each range is of consecutive indices: what a thread has in its cache from the
                  // last loop over the same data
  };

  // For `threads` >= 1 threads, which open loops and help.
  WorkSharingLoops(int threads, Sharing sharing, const LoopClocks& clocks = {});
  // Waits until all helpers have left.
  ~WorkSharingLoops();
  WorkSharingLoops(const WorkSharingLoops&) = delete;
  WorkSharingLoops& operator=(const WorkSharingLoops&) = delete;

  // Offers the indices 1 .. count - 1; index 0 is the caller's. Requires two indices and threads.
  // Null if too many loops are open, or if sharing does not pay now.
  Loop* Open(int count, Claim claim, Body body, void* context);

  // Works on the loop until all indices are done. Rethrows the first exception of a body; the loop
  // is closed by then.
  void Finish(Loop* loop);

  // True if a thread should be sent to Help, so that there are `wanted`. Ask until it is false.
  bool InviteHelper(int wanted);
  // The invited thread could not be sent.
  void WithdrawInvitation();
  bool has_helpers() { return helpers_.load(std::memory_order_relaxed) > 0 && balance_.Shares(); }

  // Called by an invited thread: helps with open loops. Returns once there was none for 500 us, or
  // between two loops when tasks wait for a thread or sharing does not pay.
  void Help();

  // A task was enqueued, and has got a thread.
  void TaskWaits();
  void TaskStarts();

 private:
  class Helper;
  struct Shape;
  // Helps with one loop that was opened within the loops of the bits `outer`. Returns whether there
  // was one.
  bool HelpOnce(Helper* helper, uint64_t outer);
  // Whether HelpOnce would find one.
  bool Offers(const Helper& helper, uint64_t outer) const;
  bool IsOffered(const Helper& helper, const Loop& loop, uint64_t ticket, uint64_t outer) const;
  uint64_t Bit(const Loop* loop) const;
  void HelpWhileThereIsWork(Helper* helper);
  bool CountHelper(int wanted);
  bool LeftTooEarly(const Helper& helper) const;
  int TakeRank();
  void ReturnRank(int rank);
  bool WorkOn(Loop* loop, uint64_t ticket, const Shape& shape, int range, int index);
  enum class Waited : unsigned char { kAwake, kAsleep };
  template <typename Ready>
  Waited WaitUntil(Ready&& ready);
  void WakeSleepers();

  const LoopClocks clocks_;
  const int threads_;
  const int size_;
  const std::unique_ptr<Loop[]> loops_;
  alignas(64) std::atomic<uint64_t> open_{0};  // bit i: loop i may have indices left
  alignas(64) std::atomic<int> waiting_tasks_{0};
  // Threads that are sure to look at open_ again. Loops count on them, and invite no others.
  std::atomic<int> helpers_{0};
  std::atomic<int> guests_{0};      // invited, and not yet back from Help
  std::atomic<uint64_t> ranks_{0};  // of those, a bit for each that is taken
  std::atomic<bool> closing_{false};
  alignas(64) std::atomic<int> sleepers_{0};  // openers that wait
  std::atomic<uint32_t> wake_epoch_{0};       // changes when one of them may go on
  SharingBalance balance_;
};

}  // namespace sap
