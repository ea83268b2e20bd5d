#include "client/mujoco/fluid.h"

#include <algorithm>

#include "client/mujoco/model_copy.h"

namespace sap::mujoco {
namespace {

// Arguments of the stage. No object to destroy, since MuJoCo's errors leave by longjmp.
struct SlopesContext {
  const MujocoCalls& calls;
  const void* model;
  void* data;
};

void AddSlopes(void* context) {
  const auto& c = *static_cast<SlopesContext*>(context);
  c.calls.passive_slopes(c.model, c.data);
}

}  // namespace

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
  SlopesContext context = {calls, copy.get(), data};
  return calls.Run(&AddSlopes, &context);
}

}  // namespace sap::mujoco
