// Adaptive polling of a completion queue: one thread, joined by further ones while it is saturated
// or blocked.
//
// If several threads wait on a queue, gRPC wakes one of them for each completed write and rotates
// the polling of sockets among them, which costs a tenth of the time of a small step. A single
// thread, however, is too slow for many clients, and while it reads a huge message all other calls
// wait. So the first thread always polls, and each further thread samples the one before it. When
// that thread is saturated, it polls as well for a limited time and then samples again.
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
  // Runs the handlers (CompletionTag) of the queue on up to `threads` threads, at least one. The
  // queue must outlive this object.
  CompletionThreads(grpc::CompletionQueue* queue, int threads);

  // Shuts the queue down and runs the remaining handlers. No operation may be started on the queue
  // from then on.
  ~CompletionThreads();

 private:
  struct alignas(64) Worker {
    std::atomic<uint64_t> transitions{0};
    int schedstat_fd{-1};  // /proc schedstat file, open once the thread runs
    bool polling{false};   // guarded by mutex_
    std::thread thread;

    ThreadSample Sample() const;
  };

  void Poll(Worker* self);
  void Assist(Worker* self, const Worker& previous);
  bool AwaitSaturation(const Worker& previous);
  bool PollFor(std::chrono::nanoseconds assist_time, Worker* self);
  void SetPolling(bool polling, Worker* self);

  grpc::CompletionQueue* const queue_;
  std::vector<Worker> workers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_{false};
};

}  // namespace sap
