#include "client/mujoco/problem_buffers.h"

namespace sap::mujoco {

int32_t FlagsOf(const MujocoCalls& calls, const void* model, bool as_sap) {
  return (as_sap ? SAP_MUJOCO_LAW_SAP : 0) | (calls.is_sparse(model) ? SAP_MUJOCO_SPARSE : 0);
}

EngineStatus WriteConstraintVelocities(const MujocoCalls& calls, const void* model,
                                       const void* data, const Fields& fields,
                                       const sap_mujoco_problem& problem) {
  if (fields.nefc == 0) return {};
  double* product = problem.doubles + problem.layout.velocities;
  return calls.Run([&] { calls.multiply_jacobian(model, data, product, fields.qvel); });
}

EngineStatus ProblemBuffers::Build(const MujocoCalls& calls, const void* model, const void* data,
                                   const Fields& fields, bool as_sap) {
  const Trees trees(fields);
  Measure(fields, trees, FlagsOf(calls, model, as_sap));
  EngineStatus multiplied = WriteConstraintVelocities(calls, model, data, fields, problem_);
  if (!multiplied) return multiplied;
  Write(fields, trees);
  return {};
}

void ProblemBuffers::BuildChange(const Fields& fields, const Trees& trees, bool is_sparse) {
  Measure(fields, trees, (is_sparse ? SAP_MUJOCO_SPARSE : 0) | SAP_MUJOCO_CHANGE);
  Write(fields, trees);
}

void ProblemBuffers::Measure(const Fields& fields, const Trees& trees, int32_t flags) {
  couplings_.Update(fields, trees);
  MeasureProblem(fields, trees, *couplings_, flags, &problem_);
  doubles_.resize(static_cast<size_t>(problem_.layout.doubles));
  unsigned_.resize(static_cast<size_t>(problem_.layout.unsigned_integers));
  integers_.resize(static_cast<size_t>(problem_.layout.integers));
  problem_.doubles = doubles_.data();
  problem_.unsigned_integers = unsigned_.data();
  problem_.integers = integers_.data();
}

void ProblemBuffers::Write(const Fields& fields, const Trees& trees) {
  WriteProblem(fields, trees, *couplings_, kModelMaterial, &problem_);
}

}  // namespace sap::mujoco
