// Steps of MuJoCo with the constraints solved by this solver, on the calling thread.
//
//   MuJoCo's stages up to its constraint solver -> problem -> solve -> forces -> integration
//
// The bits of velocities and forces are those of the Python package's `step`.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/problem_buffers.h"
#include "solver/engine/engine.h"

namespace sap::mujoco {

struct StepSettings {
  bool is_replaced = false;  // MuJoCo's own step: replaced_step.h; has no other settings
  bool as_sap = true;        // the law of SAP, otherwise MuJoCo's
  SolverOptions options;
  bool takes_unsolved = true;  // islands that were not solved go on with their best iterate
};

using StepOutcome = sap_mujoco_certificate;

// Does with a state whose problem was refused what mj_step does with an acceleration that is not
// finite: MuJoCo warns and, unless the model disables that, resets the state. False: MuJoCo's
// acceleration is finite, and the state has only its forces.
tl::expected<bool, EngineError> LetMujocoResetUnstable(const MujocoCalls& calls, const void* model,
                                                       void* data);

// One state at a time. Memory is kept for the next one, and never changes an answer.
class Stepper {
 public:
  // Computes accelerations, forces and sensors, as mj_forward does.
  tl::expected<StepOutcome, EngineError> Forward(const MujocoCalls& calls, const void* model,
                                                 void* data, const StepSettings& settings);

  // Advances the state, as mj_step does. An error leaves it where it was.
  tl::expected<StepOutcome, EngineError> Step(const MujocoCalls& calls, const void* model,
                                              void* data, const StepSettings& settings);

 private:
  EngineStatus Build(const MujocoCalls& calls, const void* model, void* data, bool as_sap);
  EngineStatus EndTimer(const MujocoCalls& calls, int timer, double begin) const;

  Fields fields_ = {};  // of the state whose problem is built
  ProblemBuffers problem_;
  SolveTask task_;
  Solver solver_{nullptr};
  ContactSolution solution_;
  double solve_begin_ = 0.0;  // time of MuJoCo's clock
};

// Step and Forward under any law, in memory that this thread keeps. Exceptions become errors.
tl::expected<StepOutcome, EngineError> Step(const MujocoCalls& calls, const void* model, void* data,
                                            const StepSettings& settings);
tl::expected<StepOutcome, EngineError> Forward(const MujocoCalls& calls, const void* model,
                                               void* data, const StepSettings& settings);

}  // namespace sap::mujoco
