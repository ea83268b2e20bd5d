// Judges recorded steps: solves the exact one under MuJoCo's law and compares the velocities.
//
//   recorded state -> MuJoCo's stages -> problem -> solve -> MuJoCo's integrator -> comparison
//
// The bits are those of the Python package's stages one by one, with any client.
#pragma once

#include <cstdint>
#include <tl/expected.hpp>
#include <vector>

#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/problem_buffers.h"
#include "client/mujoco/python_calls.h"
#include "client/mujoco/recorded_contacts.h"
#include "solver/engine/engine.h"

namespace sap::mujoco {

struct JudgedState;

// One step at a time. Memory is kept for the next one, and never changes a judgment.
class Judge {
 public:
  // Judges step k of a recording.
  //   data   memory; what it holds does not matter
  tl::expected<sap_mujoco_judgment, EngineError> Run(const MujocoCalls& calls, const void* model,
                                                     void* data,
                                                     const sap_mujoco_recording& recording,
                                                     int64_t k);

 private:
  // Solves and makes the step of a state whose positions and contacts are placed.
  tl::expected<sap_mujoco_comparison, EngineError> Compare(const JudgedState& state,
                                                           const sap_mujoco_recording& recording);
  EngineStatus Solve(const JudgedState& state);

  RecordedContacts contacts_;
  ProblemBuffers problem_;
  SolveTask task_;
  Solver solver_{nullptr};
  ContactSolution solution_;
  std::vector<double> gaps_;        // of the islands
  std::vector<double> tree_error_;  // [ntree]
};

}  // namespace sap::mujoco
