// A process sap-worlds: one thread that steps worlds of MuJoCo, in a jail.
//
//   server                         worker
//   request in the shared block -> reads, steps, writes into the block -> answers one byte
//
// What the worker writes is the data of a stranger: lengths and offsets are the server's own, and
// numbers are copied before they are looked at.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "server/service_error.h"
#include "server/worlds/world_slice.h"

namespace sap {

struct WorkerConfig {
  std::string program;         // sap-worlds
  std::string mujoco_library;  // path of libmujoco.so.*
  int64_t max_memory_bytes{int64_t{2048} << 20};  // address space
  double max_load_s{10};
  double max_step_s{2};
  bool without_jail{false};  // where a kernel does not allow one
};

// What a worker says once its libraries are open.
struct WorkerGreeting {
  int32_t mujoco_version{0};
  std::array<uint8_t, 32> library_sha256{};
};

// Single-threaded.
class WorkerProcess {
 public:
  using Clock = std::chrono::steady_clock;
  // Whether the caller has no use for the answer any more. Called every few milliseconds, on the
  // thread of the caller.
  using IsStopped = std::function<bool()>;

  // An error: the program, the library or the jail is not available, with the reason.
  static tl::expected<std::unique_ptr<WorkerProcess>, std::string> Start(const WorkerConfig& config);
  // Ends it.
  ~WorkerProcess();

  const WorkerGreeting& greeting() const { return greeting_; }

  // Whether the process is there. It is not after an error that has ended it.
  bool is_alive() const { return pid_ > 0; }

  // Loads a model, or knows it already, and drops least recently used ones.
  // MODEL_REFUSED, MODEL_MEMORY, MODEL_TIME: as PutModel says.
  tl::expected<ModelSizes, ServiceError> Load(const ModelSource& model, const IsStopped& is_stopped);

  // Steps a slice of a model, which it loads if it has to. Failures of worlds are in their progress.
  // WORLD_STEP_TIME; WORLD_LOST: the process has ended; CANCELLED: stopped, within 30 ms of the next
  // step, or with the process.
  ServiceStatus Advance(const WorldSlice& slice, const IsStopped& is_stopped);

 private:
  WorkerGreeting greeting_;
  int pid_{0};
};

}  // namespace sap
