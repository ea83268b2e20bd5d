// A sequence of problems in this process, each started from the velocities of the last solved one.
#pragma once

#include <memory>

#include "solver/engine/engine.h"
#include "solver/problem/named_velocities.h"

namespace sap {

// Not thread-safe. May outlive whoever made the engine.
class EngineSession {
 public:
  explicit EngineSession(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  // Solves a step. Trees and bodies without a guess start from their last velocities, by name. A
  // step that fails leaves the session as it was.
  EngineStatus Step(const SolveRequest& request, const CallLimits& call, SolveAnswer* answer);

  // Forgets the velocities: the next step is as the first one was.
  void Reset() { last_velocities_.Clear(); }

 private:
  const std::shared_ptr<Engine> engine_;
  std::unique_ptr<Workspace> workspace_;  // null during a step, and after a failed one
  NamedVelocities last_velocities_;
};

}  // namespace sap
