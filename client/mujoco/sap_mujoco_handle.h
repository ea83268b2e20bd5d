// The handle of the C interface: MuJoCo's functions, and the threads of rollouts; and how its
// functions report errors.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/sap_mujoco.h"
#include "solver/engine/engine.h"

namespace sap::mujoco {

// Threads that are kept for the next call with as many.
class KeptEngine {
 public:
  std::shared_ptr<Engine> WithThreads(int threads) {
    const std::scoped_lock lock(mutex_);
    if (engine_ == nullptr || engine_->threads() != threads) {
      engine_ = std::make_shared<Engine>(threads);
    }
    return engine_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Engine> engine_;
};

// Writes an error to the outcome; returns its code.
int32_t Refuse(EngineErrorCode code, const std::string& message, sap_mujoco_outcome* outcome);

}  // namespace sap::mujoco

struct sap_mujoco {
  sap::mujoco::MujocoCalls calls;
  mutable sap::mujoco::KeptEngine engine;
};
