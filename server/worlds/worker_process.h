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
#include "server/worlds/shared_block.h"
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
  // LD_LIBRARY_PATH of the worker, which gets no other variable of the server's environment.
  std::string library_path;
};

// Said once its libraries are open.
struct WorkerGreeting {
  int32_t mujoco_version{0};
  std::array<uint8_t, 32> library_sha256{};
  bool is_jailed{false};
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
  // How a request has ended.
  enum class Ended { kAnswered, kStopped, kTooLong, kDied };

  explicit WorkerProcess(const WorkerConfig& config) : config_(config) {}

  std::string Spawn();
  std::string Greet();
  // Allows it the memory of a model and what it had before, and the block. False: the kernel does
  // not set the limit.
  bool LimitMemory() const;

  // Sends the request in the block, and waits for the answer. Too long: a step of the request, of
  // `longest_s` of its processor time; then the process has ended, as it has if it was not stopped
  // in time.
  Ended Ask(int64_t steps, double longest_s, const IsStopped& is_stopped);
  Ended Wait(int64_t steps, double longest_s, const IsStopped& is_stopped);
  Ended Stop();
  bool HasAnswered(int timeout_ms, bool* has_died) const;
  double ProcessorTime() const;
  // Ends the process; how it had ended, if it had.
  std::string End();

  // False: there is no memory.
  bool PutModel(const ModelSource& model);
  tl::expected<ModelSizes, ServiceError> TakeSizes();
  // Without an error and with is_unknown_: the model has to be loaded.
  ServiceStatus AskForSlice(const WorldSlice& slice, const IsStopped& is_stopped);
  // Ends the process.
  ServiceStatus Lost(const WorldSlice& slice, const std::string& how);
  // An error of the step that it was taking.
  ServiceStatus Fault(const WorldSlice& slice, const std::string& what, const char* reason) const;

  const WorkerConfig config_;
  WorkerGreeting greeting_;
  SharedBlock block_;
  FileDescriptor socket_;
  FileDescriptor lifeline_;
  int pid_{0};
  int64_t address_space_{0};
  // About the last request:
  int64_t last_position_{0};
  std::string last_end_;
  bool is_unknown_{false};
};

}  // namespace sap
