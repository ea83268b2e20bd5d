#include "client/mujoco/fluid.h"

#include <algorithm>

#include "client/mujoco/model_copy.h"

namespace sap::mujoco {

bool HasFluid(const Fields& fields) {
  constexpr int kNone = mjDSBL_SPRING | mjDSBL_DAMPER;
  return (fields.density > 0.0 || fields.viscosity > 0.0) && (fields.disableflags & kNone) != kNone;
}

EngineStatus ComputeFluidSlopes(const MujocoCalls& calls, const void* model, void* data) {
  const Fields fields = ReadFields(calls.fields, model, data);
  if (!HasFluid(fields)) return {};
  int64_t entries = 0;
  for (int64_t i = 0; i < fields.nv; ++i) {
    entries = std::max<int64_t>(entries, fields.D_rowadr[i] + fields.D_rownnz[i]);
  }
  std::fill_n(fields.qDeriv, entries, 0.0);
  ModelCopy copy(calls.fields, model);
  copy.Enable(mjDSBL_SPRING);   // without either, MuJoCo takes no fluid
  copy.Disable(mjDSBL_DAMPER);  // dampers of joints and tendons, and of edges, are none of it
  return calls.Run([&] { calls.passive_slopes(copy.get(), data); });
}

}  // namespace sap::mujoco
