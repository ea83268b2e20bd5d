// Whatever steps worlds for the server: a process, or what a test has for one.
#pragma once

#include <functional>
#include <tl/expected.hpp>

#include "server/service_error.h"
#include "server/worlds/world_slice.h"

namespace sap {

// Single-threaded.
class Worker {
 public:
  // Whether the caller has no use for the answer any more. Called every few milliseconds, on the
  // thread of the caller.
  using IsStopped = std::function<bool()>;

  // Ends it.
  virtual ~Worker() = default;

  // Whether it can be used. It cannot after an error that has ended it.
  virtual bool is_alive() const = 0;
  // The process; 0: there is none.
  virtual int pid() const { return 0; }

  // Loads a model, or knows it already, and drops least recently used ones. MODEL_REFUSED,
  // MODEL_MEMORY, MODEL_TIME: as PutModel says. CANCELLED: stopped.
  virtual tl::expected<ModelSizes, ServiceError> Load(const ModelSource& model,
                                                      const IsStopped& is_stopped) = 0;

  // Steps a slice of a model, which it loads if it has to. Failures of worlds are in their
  // progress. MODEL_REFUSED: not under this law. WORLD_STEP_TIME; WORLD_LOST: the process has
  // ended; CANCELLED: stopped, within 30 ms of the next step, or with the process.
  virtual ServiceStatus Advance(const WorldSlice& slice, const IsStopped& is_stopped) = 0;
};

}  // namespace sap
