// The workers of a server. One that has served a client serves no other: what a hostile model takes
// over sees the data of its own client alone.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "server/worlds/model_cache.h"
#include "server/worlds/worker.h"

namespace sap {

// Why workers have ended.
enum class WorkerEnd : uint8_t {
  kOtherClient,  // its place was needed for another client
  kIdle,         // unused for a while, or memory ran short
  kLost,         // ended by a model, or because of one: too long, too much memory, not stopped
};
constexpr int kNumWorkerEnds = 3;
const char* Name(WorkerEnd end);

// Thread-safe. At most as many workers are in use as there are threads that ask for them.
class WorkerPool {
 private:
  using Clock = std::chrono::steady_clock;
  struct Idle {
    std::unique_ptr<Worker> worker;
    std::string client;        // empty: nobody yet
    std::set<ModelId> models;  // that it has loaded
    Clock::time_point since;
  };

 public:
  using StartWorker = std::function<tl::expected<std::unique_ptr<Worker>, std::string>()>;

  // Keeps at most so many workers that are not in use.
  WorkerPool(StartWorker start, int max_idle) : start_(std::move(start)), max_idle_(max_idle) {}

  // A worker in use, which returns to the pool.
  class Lease {
   public:
    Lease(WorkerPool* pool, Idle idle)
        : pool_(pool), pid_(idle.worker->pid()), idle_(std::move(idle)) {}
    ~Lease() {
      if (pool_ != nullptr) pool_->Return(pid_, std::move(idle_));
    }
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          pid_(other.pid_),
          idle_(std::move(other.idle_)) {}
    Lease& operator=(Lease&&) = delete;

    // Ends the worker, which is not to be trusted any more.
    void End() { idle_.worker.reset(); }

    Worker* operator->() const { return idle_.worker.get(); }
    tl::expected<ModelSizes, ServiceError> Load(const ModelSource& model,
                                                const Worker::IsStopped& is_stopped);
    // Loads it unless the worker has. It may have dropped it since: then Advance loads it.
    ServiceStatus Prepare(const ModelSource& model, const Worker::IsStopped& is_stopped);

   private:
    WorkerPool* pool_;
    int pid_;  // also when it has ended
    Idle idle_;
  };

  // A worker for the client: of those that are idle one that has the model, else another one of the
  // client, else one that has served nobody. UNAVAILABLE: none can be started.
  tl::expected<Lease, ServiceError> Take(std::string_view client, const ModelId& model);

  // Keeps a worker that has served nobody yet.
  void Add(std::unique_ptr<Worker> worker) { Keep({std::move(worker), "", {}, Clock::now()}); }

  // Ends idle workers that were not used for `unused`.
  void EndIdle(Clock::duration unused, Clock::time_point now = Clock::now());

  int idle() const;
  int in_use() const { return in_use_.load(std::memory_order_relaxed); }
  // Memory of their processes that no other one shares, those in use included.
  int64_t resident_bytes() const;
  uint64_t ended(WorkerEnd why) const {
    return ended_[static_cast<int>(why)].load(std::memory_order_relaxed);
  }

 private:
  std::optional<Idle> TakeIdle(std::string_view client, const ModelId& model);
  void Return(int pid, Idle idle);
  void Keep(Idle idle);
  void CountEnd(WorkerEnd why) {
    ended_[static_cast<int>(why)].fetch_add(1, std::memory_order_relaxed);
  }

  const StartWorker start_;
  const int max_idle_;
  std::atomic<int> in_use_{0};
  std::array<std::atomic<uint64_t>, kNumWorkerEnds> ended_{};
  mutable std::mutex mutex_;
  std::list<Idle> idle_;  // the most recently used one first
  std::list<int> pids_;   // of workers that are in use
};

}  // namespace sap
