// Work-sharing scheduler for nested parallel loops.
//
// A thread opens a loop, works on it, and is joined by helper threads. Opening, joining and closing
// take a few atomic operations and no system call, so that loops of some microseconds are worth
// sharing. Helpers that find no open loop spin, then yield, for at most 500 us: between two loops
// of a solve there is often less time than it takes to wake a thread.
//
// The opener waits only for helpers that are in the middle of an index. On cores that other
// processes use, a helper that is preempted between indices therefore delays no loop. While it
// waits, it helps with loops that were opened within indices of its own loop, and with no others:
// those are what it waits for, and what their bodies use of a thread is not in use by then.
//
// An exception of a body ends its loop only: indices that have not begun are left out, and the
// opener gets the exception that came first once no helper is in the loop any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

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
  explicit WorkSharingLoops(int threads);
  // Waits until all helpers have left.
  ~WorkSharingLoops();
  WorkSharingLoops(const WorkSharingLoops&) = delete;
  WorkSharingLoops& operator=(const WorkSharingLoops&) = delete;

  // Offers the indices 1 .. count - 1; index 0 is the caller's. count >= 1. Null if too many loops
  // are open.
  Loop* Open(int count, Claim claim, int thread, Body body, void* context);

  // Works on the loop until all indices are done and no helper is in it. Rethrows the first
  // exception of a body; the loop is closed by then.
  void Finish(Loop* loop);

  // True if a thread should be sent to Help, so that there are `wanted`. Ask until it is false.
  bool InviteHelper(int wanted);
  // The invited thread could not be sent.
  void WithdrawInvitation();
  bool has_helpers() const { return helpers_.load(std::memory_order_relaxed) > 0; }

  // Called by an invited thread: helps with open loops. Returns once there was none for 500 us, or
  // between two loops when tasks wait for a thread.
  void Help(int thread);

  // A task was enqueued, and has got a thread.
  void TaskWaits();
  void TaskStarts();

 private:
  // With one of the loops that were opened within those of the bits `outer`. Whether there was one.
  bool HelpOnce(int thread, uint64_t outer);
  uint64_t Bit(const Loop* loop) const;
  void HelpWhileThereIsWork(int thread);
  bool CountHelper(int wanted);
  bool LeftTooEarly() const;
  void ClaimIndices(Loop* loop, int first);
  template <typename Work>
  void WorkOn(Loop* loop, Work&& work);

  const int threads_;
  const int size_;
  const std::unique_ptr<Loop[]> loops_;
  alignas(64) std::atomic<uint64_t> open_{0};  // bit i: loop i may have indices left
  alignas(64) std::atomic<int> waiting_tasks_{0};
  // Threads that are sure to look at open_ again. Loops count on them, and invite no others.
  std::atomic<int> helpers_{0};
  std::atomic<int> guests_{0};  // invited, and not yet back from Help
  std::atomic<bool> closing_{false};
};

}  // namespace sap
