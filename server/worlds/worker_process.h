// A process sap-worlds: one thread that steps worlds of MuJoCo, in a jail.
//
//   server                         worker
//   request in the shared block -> reads, steps, writes into the block -> answers one byte
//
// Its answers are the data of a stranger: lengths and offsets are the server's own, and numbers are
// copied before they are looked at.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "server/service_error.h"
#include "server/worlds/worker.h"
#include "server/worlds/world_slice.h"

namespace sap {

struct WorkerConfig {
  std::string program;                            // sap-worlds
  std::string mujoco_library;                     // path of libmujoco.so.*
  int64_t max_memory_bytes{int64_t{2048} << 20};  // address space
  double max_load_s{10};
  double max_step_s{2};
  bool without_jail{false};  // where a kernel does not allow one
};

// Said once its libraries are open.
struct WorkerGreeting {
  int32_t mujoco_version{0};
  std::array<uint8_t, 32> library_sha256{};
};

// Single-threaded.
class WorkerProcess final : public Worker {
 public:
  using Clock = std::chrono::steady_clock;

  // An error: the program, the library or the jail is not available, with the reason.
  static tl::expected<std::unique_ptr<WorkerProcess>, std::string> Start(
      const WorkerConfig& config);
  // Ends it.
  ~WorkerProcess() override;

  const WorkerGreeting& greeting() const { return greeting_; }

  bool is_alive() const override { return pid_ > 0; }
  int pid() const override { return pid_; }
  tl::expected<ModelSizes, ServiceError> Load(const ModelSource& model,
                                              const IsStopped& is_stopped) override;
  ServiceStatus Advance(const WorldSlice& slice, const IsStopped& is_stopped) override;

 private:
  WorkerGreeting greeting_;
  int pid_{0};
};

}  // namespace sap
