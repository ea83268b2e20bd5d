// The threads that take the steps of a completion queue: one as long as it keeps up, and more when
// it does not.
//
// Where several threads wait in a queue, gRPC wakes one of them for each write that completes and
// lets them poll the sockets in turns: a tenth of the time of a small step. But one alone would be
// too few for many clients, and while it reads a huge message all others would wait. So the first
// thread always serves, and each other one looks now and then at the one before it: whether that
// has time to spare, and gets on. If not, it serves, too, for a stint, and looks again.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace sap {

// What a thread has done until some time.
struct ThreadProgress {
  std::chrono::nanoseconds time{};  // steady
  std::chrono::nanoseconds busy{};  // running until then, or waiting for a processor
  uint64_t half_steps{0};           // begun and ended: odd in the middle of a step
};

// Whether a thread needs help, from a look at it every now and then.
class ThreadWatch {
 public:
  explicit ThreadWatch(const ThreadProgress& start) : last_(start), earlier_(start) {}

  // It does if since the last look it was in one step all the while, or in none but at work (that
  // is, reading a message), or had no time to spare over some looks.
  bool NeedsHelp(const ThreadProgress& now);

  // Until the next look: longer and longer while nothing happens.
  std::chrono::nanoseconds wait() const { return wait_; }

 private:
  static constexpr std::chrono::milliseconds kShortestWait{5};

  std::chrono::nanoseconds wait_{kShortestWait};
  ThreadProgress last_;
  ThreadProgress earlier_;
};

// How long to help, after `watched` without need: longer each time that the need is back at once,
// so that looking whether one thread is enough costs little where it is not.
std::chrono::nanoseconds NextStint(std::chrono::nanoseconds last_stint,
                                   std::chrono::nanoseconds watched);

class CompletionThreads {
 public:
  // Takes the steps (CompletionTag) of the queue with up to that many threads, at least one. The
  // queue must outlive this.
  CompletionThreads(grpc::CompletionQueue* queue, int threads);

  // Shuts the queue down, and takes the steps that are left in it. No operation may be started on
  // the queue from then on.
  ~CompletionThreads();

 private:
  struct alignas(64) Seat {
    std::atomic<uint64_t> half_steps{0};
    int statistics{-1};  // file of the kernel; since it serves
    bool serves{false};  // guarded by mutex_
    std::thread thread;

    ThreadProgress Progress() const;
  };

  void Serve(Seat* self);
  void Help(Seat* self, const Seat& previous);
  bool AwaitNeed(const Seat& previous);
  bool ServeFor(std::chrono::nanoseconds stint, Seat* self);
  void SetServes(bool serves, Seat* self);

  grpc::CompletionQueue* const queue_;
  std::vector<Seat> seats_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_{false};
};

}  // namespace sap
