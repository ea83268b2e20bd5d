// Worker threads for tasks and parallel loops. The only user of oneTBB.
//
// A task is a function pointer and a context, so that this header shows no TBB type. Loops nest
// (islands, then fronts inside an island) in one arena without more threads than it has slots. What
// a task computes must not depend on which thread runs it or when: that is what keeps results the
// same for any number of threads.
//
// The threads are those of oneTBB, but in a process made by fork(), where they are ForkedThreads.
// An arena that was made before the fork must not be used, nor destroyed, in the child.
//
// The indices of loops are handed out by a WorkSharingLoops. The parallel_for of oneTBB 2021.8
// sends workers to sleep after every loop, and a Newton iteration on one large island has a hundred
// loops, some shorter than it takes to wake a thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "solver/parallel/sharing_balance.h"
#include "solver/parallel/task_order.h"

namespace sap {

class TaskArena {
 public:
  // An arena in which at most num_threads threads work at once, the calling thread of a loop
  // included. num_threads >= 1.
  explicit TaskArena(int num_threads, Sharing sharing = Sharing::kWhereItGains);
  ~TaskArena();
  TaskArena(const TaskArena&) = delete;
  TaskArena& operator=(const TaskArena&) = delete;

  int num_threads() const { return num_threads_; }
  Sharing sharing() const { return sharing_; }

  // Calls body(i) for every i in [0, count) and returns when all are done. Indices are dealt out to
  // the threads in ascending order, the first to the caller, so put the largest first. A thread
  // that has done its own takes those of others. With one thread, and while sharing gains nothing
  // next to other processes, the loop runs inline. A thread that waits here for others runs indices
  // of loops that they have opened within this loop, and nothing else.
  // An exception of body(i) ends the loop: indices that have not begun are left out, and once no
  // thread works on the loop any more, the first exception is rethrown here.
  template <typename Body>
  void ParallelFor(int count, Body&& body) {
    RunLoop(count, /*ascending=*/true, &Call<std::remove_reference_t<Body>>, Context(body));
  }

  // The same for pieces of an array, alike in size: each thread starts at a range of its own, so
  // that it finds most of it in its cache from the last loop over the array.
  template <typename Body>
  void ParallelForPieces(int count, Body&& body) {
    RunLoop(count, /*ascending=*/false, &Call<std::remove_reference_t<Body>>, Context(body));
  }

  // Calls body(i) for every task i of the order once those that it waits for are done, and returns
  // when all are. No thread waits for a task to be ready: they share the tasks that wait for none,
  // and one that has done the last task that another waited for goes on with that one. It may share
  // parts of it in a loop of its own. `state` has an entry per task, to be worked in.
  // An exception ends it as it ends a loop.
  template <typename Body>
  void ParallelForTasks(const TaskOrder& order, int* state, Body&& body) {
    RunTasks(order, state, &Call<std::remove_reference_t<Body>>, Context(body));
  }

  // True if helper threads are awake or being woken: then even short loops gain by them.
  bool has_helpers() const;

  // Starts task(context) on a worker thread of the arena and returns at once. Never runs on the
  // calling thread. The arena must outlive it. The task handles its own errors: an exception that
  // reached oneTBB would cancel every other task of the arena.
  void Enqueue(void (*task)(void* context) noexcept, void* context);

 private:
  struct Impl;

  template <typename Body>
  static void Call(void* context, int index) {
    (*static_cast<Body*>(context))(index);
  }
  template <typename Body>
  static void* Context(Body& body) {
    return const_cast<void*>(static_cast<const void*>(&body));
  }
  void RunLoop(int count, bool ascending, void (*body)(void* context, int index), void* context);
  void RunTasks(const TaskOrder& order, int* state, void (*body)(void* context, int index),
                void* context);
  bool SendHelper();

  const int num_threads_;
  const Sharing sharing_;
  std::unique_ptr<Impl> impl_;
};

// How a loop is cut: elements per chunk, and the approximate time of one chunk.
struct Chunks {
  int size;
  int nanoseconds;

  // Number of chunks of [begin, end).
  constexpr int Count(int begin, int end) const { return (end - begin + size - 1) / size; }
  // Entries that the chunks of [begin, end) have written to an array, from entry `first` on, to be
  // summed in their order.
  template <typename Part>
  std::span<const Part> Parts(const std::vector<Part>& array, int first, int begin, int end) const {
    return std::span(array).subspan(first, Count(begin, end));
  }
};

// Whether the arena should share a loop over this number of chunks, or even wake other threads for
// it.
inline bool IsWorthSharing(const TaskArena& arena, int chunks, const Chunks& cut) {
  constexpr int64_t kWorthWaking = 30'000;  // nanoseconds
  constexpr int64_t kWorthSharing = 5'000;
  const int64_t nanoseconds = chunks * static_cast<int64_t>(cut.nanoseconds);
  return chunks > 1 && nanoseconds >= kWorthSharing &&
         (nanoseconds >= kWorthWaking || arena.has_helpers());
}

// The loop of ForChunks in the arena. A function of its own with a copy of the body: what a small
// loop works on stays in registers, as no other function gets to know its address.
template <typename Body>
[[gnu::noinline]] void ShareChunks(TaskArena* arena, int begin, int end, const Chunks& cut,
                                   Body body) {
  arena->ParallelForPieces(cut.Count(begin, end), [&](int chunk) {
    const int from = begin + chunk * cut.size;
    body(from, from + cut.size < end ? from + cut.size : end, chunk);
  });
}

// Calls body(begin_of_chunk, end_of_chunk, chunk) for [begin, end) cut into chunks, in the arena if
// there is one and the loop is worth it. Chunks depend on the range alone, so sums over chunks have
// the same order for any number of threads.
template <typename Body>
inline void ForChunks(TaskArena* arena, int begin, int end, const Chunks& cut, Body&& body) {
  if (arena != nullptr && IsWorthSharing(*arena, cut.Count(begin, end), cut)) {
    return ShareChunks<std::remove_cvref_t<Body>>(arena, begin, end, cut, body);
  }
  int chunk = 0;
  for (int from = begin; from < end; from += cut.size) {
    body(from, from + cut.size < end ? from + cut.size : end, chunk++);
  }
}

// AddChunks of several chunks, a function of its own as ShareChunks is.
template <typename Part, typename Body>
[[gnu::noinline]] void AddSeveralChunks(TaskArena* arena, int begin, int end, const Chunks& cut,
                                        Part* parts, Part* sum, Body body) {
  ForChunks(arena, begin, end, cut,
            [&](int from, int to, int chunk) { parts[chunk] = body(from, to); });
  for (int chunk = 0; chunk < cut.Count(begin, end); ++chunk) *sum += parts[chunk];
}

// Adds body(begin_of_chunk, end_of_chunk) for [begin, end) cut into chunks to *sum, in their order.
// parts[chunk] holds that of each where there are several: in most islands there is one.
template <typename Part, typename Body>
inline void AddChunks(TaskArena* arena, int begin, int end, const Chunks& cut, Part* parts,
                      Part* sum, Body&& body) {
  if (end - begin > cut.size) {
    AddSeveralChunks<Part, std::remove_cvref_t<Body>>(arena, begin, end, cut, parts, sum, body);
  } else if (begin < end) {
    *sum += body(begin, end);
  }
}

}  // namespace sap
