// States of MuJoCo that the threads of a rollout take in turn.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "client/mujoco/mujoco_calls.h"

namespace sap::mujoco {

// It has as many states of a model as were in use at once: to make one takes hundreds of
// microseconds, to reset one some five. Threads may use it at once.
class StatePool {
 public:
  explicit StatePool(const MujocoCalls& calls) : calls_(calls) {}
  StatePool(const StatePool&) = delete;
  StatePool& operator=(const StatePool&) = delete;
  ~StatePool();

  // A state of the model as mj_resetData leaves it. Fails where MuJoCo does.
  tl::expected<void*, EngineError> Take(const void* model);

  void Return(const void* model, void* data);

 private:
  void* TakeFree(const void* model);

  const MujocoCalls& calls_;
  std::mutex mutex_;
  std::map<const void*, std::vector<void*>> free_;  // by model
};

}  // namespace sap::mujoco
