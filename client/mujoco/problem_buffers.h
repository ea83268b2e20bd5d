// The problem of a state in memory that is kept for the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/problem_writer.h"

namespace sap::mujoco {

inline constexpr sap_mujoco_material kModelMaterial = {
    .sigma = 1e-3, .stiffness = nullptr, .relaxation_time = nullptr, .friction = nullptr};

// Flags of the problem of a law.
int32_t FlagsOf(const MujocoCalls& calls, const void* model, bool as_sap);

// Writes J v_0 to its place in the problem of a state.
EngineStatus WriteConstraintVelocities(const MujocoCalls& calls, const void* model,
                                       const void* data, const Fields& fields,
                                       const sap_mujoco_problem& problem);

class ProblemBuffers {
 public:
  // Writes the problem of a state whose smooth forces are computed, under the law of SAP or
  // MuJoCo's. J v_0 is MuJoCo's product.
  EngineStatus Build(const MujocoCalls& calls, const void* model, const void* data,
                     const Fields& fields, bool as_sap);

  // Writes the problem of MuJoCo's constraint solver, in v - v_0; needs no J v_0.
  void BuildChange(const Fields& fields, const Trees& trees, bool is_sparse);

  // Valid until the next problem is built.
  const sap_mujoco_problem& problem() const { return problem_; }
  double* guess() { return doubles_.data() + problem_.layout.guess; }                // [nv]
  const double* v_star() const { return doubles_.data() + problem_.layout.v_star; }  // [nv]

 private:
  // Determines the layout of the problem, and makes room for it.
  void Measure(const Fields& fields, const Trees& trees, int32_t flags);
  void Write(const Fields& fields, const Trees& trees);

  KeptCouplings couplings_;
  sap_mujoco_problem problem_ = {};
  std::vector<double> doubles_;
  std::vector<uint32_t> unsigned_;
  std::vector<int32_t> integers_;
};

}  // namespace sap::mujoco
