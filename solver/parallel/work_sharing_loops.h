// Work-sharing scheduler for nested parallel loops.
//
// A thread opens a loop, works on it, and is joined by helper threads. Opening, joining and closing
// take a few atomic operations and no system call, so that loops of some microseconds are worth
// sharing. Helpers that find no open loop spin, then yield, for at most 500 us: between two loops
// of a solve there is often less time than it takes to wake a thread.
//
// The opener waits only for helpers that are in the middle of an index. While it waits, it helps
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
// opener gets the exception that came first once no helper is in the loop any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "solver/parallel/sharing_balance.h"

namespace sap {

class WorkSharingLoops {
 public:
  using Body = void (*)(void* context, int index);
  struct Loop;

  // How indices are claimed.
  enum class Claim : unsigned char {
    kAscending,   // one after another: tasks of unlike size, the largest first
    kByNeighbors  // each thread starts at a range of its own: what it has in its cache from the
                  // last loop over the same data
  };

  // Helpers are numbered 0 .. threads - 1. Threads that open loops have such a number too or, if
  // they never help, `threads`. threads >= 1.
  WorkSharingLoops(int threads, Sharing sharing);
  // Waits until all helpers have left.
  ~WorkSharingLoops();
  WorkSharingLoops(const WorkSharingLoops&) = delete;
  WorkSharingLoops& operator=(const WorkSharingLoops&) = delete;

  // Offers the indices 1 .. count - 1; index 0 is the caller's. count >= 1. Null if too many loops
  // are open, or if sharing does not pay now.
  Loop* Open(int count, Claim claim, int thread, Body body, void* context);

  // Works on the loop until all indices are done and no helper is in it. Rethrows the first
  // exception of a body; the loop is closed by then.
  void Finish(Loop* loop);

  // True if a thread should be sent to Help, so that there are `wanted`. Ask until it is false.
  bool InviteHelper(int wanted);
  // The invited thread could not be sent.
  void WithdrawInvitation();
  bool has_helpers() { return helpers_.load(std::memory_order_relaxed) > 0 && balance_.Shares(); }

  // Called by an invited thread: helps with open loops. Returns once there was none for 500 us, or
  // between two loops when tasks wait for a thread or sharing does not pay.
  void Help(int thread);

  // A task was enqueued, and has got a thread.
  void TaskWaits();
  void TaskStarts();

 private:
  class Helper;
  // With one of the loops that were opened within those of the bits `outer`. Whether there was one.
  bool HelpOnce(Helper* helper, uint64_t outer);
  // Whether HelpOnce would find one.
  bool Offers(uint64_t outer) const;
  bool IsOffered(const Loop& loop, uint64_t ticket, uint64_t outer) const;
  uint64_t Bit(const Loop* loop) const;
  void HelpWhileThereIsWork(Helper* helper);
  bool CountHelper(int wanted);
  bool LeftTooEarly() const;
  void ClaimIndices(Loop* loop, int first);
  template <typename Work>
  void WorkOn(Loop* loop, Work&& work);
  enum class Waited : unsigned char { kAwake, kAsleep };
  template <typename Ready>
  Waited WaitUntil(Ready&& ready);
  void WakeSleepers();

  const int threads_;
  const int size_;
  const std::unique_ptr<Loop[]> loops_;
  alignas(64) std::atomic<uint64_t> open_{0};  // bit i: loop i may have indices left
  alignas(64) std::atomic<int> waiting_tasks_{0};
  // Threads that are sure to look at open_ again. Loops count on them, and invite no others.
  std::atomic<int> helpers_{0};
  std::atomic<int> guests_{0};  // invited, and not yet back from Help
  std::atomic<bool> closing_{false};
  alignas(64) std::atomic<int> sleepers_{0};  // openers that wait
  std::atomic<uint32_t> wake_epoch_{0};       // changes when one of them may go on
  SharingBalance balance_;
};

}  // namespace sap
