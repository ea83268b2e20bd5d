// Loops on offer to whichever threads have nothing else to do.
//
// A thread opens a loop, works on it, and is joined by threads that help. Opening, joining and
// closing take a few atomic operations and no system call, so that loops of some microseconds are
// worth sharing. Helpers that find no open loop stay for a while, first spinning, then yielding:
// between two loops of a solve there is often less time than it takes to wake a thread.
//
// The thread that opened a loop waits only for helpers that are in the middle of an index. On cores
// that other processes use, a helper that is kept from running therefore holds nothing up.
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

  // Threads that help are numbered 0 .. threads - 1, those that open loops like them or, if they
  // never help, `threads`. threads >= 1.
  explicit WorkSharingLoops(int threads);
  // Waits until all helpers have left.
  ~WorkSharingLoops();
  WorkSharingLoops(const WorkSharingLoops&) = delete;
  WorkSharingLoops& operator=(const WorkSharingLoops&) = delete;

  // Offers the indices 1 .. count - 1; index 0 is the caller's. count >= 1. Null if too many loops
  // are open.
  Loop* Open(int count, Claim claim, int thread, Body body, void* context);

  // Works on the loop until all indices are done, by whomever.
  void Finish(Loop* loop);

  // True if a thread should be sent to Help, so that there are `wanted`. Ask until it is false.
  bool InviteHelper(int wanted);
  bool has_helpers() const { return helpers_.load(std::memory_order_relaxed) > 0; }

  // Of a thread that was invited: helps with open loops. Returns once there was none for a while,
  // or at the next gap when tasks wait for a thread.
  void Help(int thread);

  // A task waits for a thread, and has got one.
  void TaskWaits();
  void TaskStarts();

 private:
  bool HelpOnce(int thread);
  void HelpWhileThereIsWork(int thread);
  void Work(Loop* loop, int first);

  const int threads_;
  const int size_;
  const std::unique_ptr<Loop[]> loops_;
  alignas(64) std::atomic<uint64_t> open_{0};  // bit i: loop i may have indices left
  alignas(64) std::atomic<int> waiting_tasks_{0};
  std::atomic<int> helpers_{0};  // invited or present
  std::atomic<bool> closing_{false};
};

}  // namespace sap
