// Threads of the completion queues: each queue has one of its own, and one more thread assists
// where that one is saturated or blocked.
//
// If several threads wait on a queue, gRPC wakes one of them for each completed write and rotates
// the polling of sockets among them, which costs a tenth of the time of a small step with two
// threads, and half of the rate with eight. A thread that has its queue for itself, however, may be
// too slow for the clients on it, and while it reads a huge message all their other calls wait. So
// the assisting thread samples the others. When one of them is saturated, it polls the same queue
// for a limited time and then samples again.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace sap {

// Activity of a thread up to a point in time.
struct ThreadSample {
  std::chrono::nanoseconds time{};  // steady clock
  std::chrono::nanoseconds busy{};  // total time running or waiting for a processor
  uint64_t transitions{0};  // handlers started plus handlers finished: odd while a handler runs
};

// Detects from successive samples whether a thread is saturated.
class SaturationDetector {
 public:
  explicit SaturationDetector(const ThreadSample& start) : last_(start), period_start_(start) {}

  // True if, since the last sample, the thread stayed in one handler, or ran more than half of the
  // time without completing a handler (it reads a message); or if it was busy for more than 95 % of
  // the last 20 ms.
  bool IsSaturated(const ThreadSample& now);

  // Time until the next sample: doubles while the thread completes no handler.
  std::chrono::nanoseconds poll_interval() const { return poll_interval_; }

 private:
  static constexpr std::chrono::milliseconds kMinPollInterval{5};

  std::chrono::nanoseconds poll_interval_{kMinPollInterval};
  ThreadSample last_;
  ThreadSample period_start_;
};

// Polling time of a joining thread, given the previous one and how long the watched thread then
// stayed unsaturated. It doubles when saturation returns within the previous polling time, so that
// frequent probing costs little under sustained load.
std::chrono::nanoseconds NextAssistTime(std::chrono::nanoseconds last_assist_time,
                                        std::chrono::nanoseconds unsaturated_for);

class CompletionThreads {
 public:
  // Runs the handlers (CompletionTag) of the queues, with one thread for each and, if it is
  // `assisted`, one for all. The queues must outlive this object.
  CompletionThreads(std::vector<grpc::CompletionQueue*> queues, bool assisted);

  // Shuts the queues down and runs the remaining handlers. No operation may be started on them from
  // then on.
  ~CompletionThreads();

 private:
  // The thread of a queue.
  struct alignas(64) Worker {
    std::atomic<uint64_t> transitions{0};
    int schedstat_fd{-1};  // /proc schedstat file
    grpc::CompletionQueue* queue{nullptr};
    std::thread thread;

    ThreadSample Sample() const;
  };

  void Poll(Worker* self);
  void Assist();
  const Worker* AwaitSaturation();

  std::vector<Worker> workers_;
  std::latch ready_;  // the workers' schedstat files are open
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_{false};
  std::thread assistant_;
};

}  // namespace sap
