#include "client/mujoco/discrete_stages.h"

#include <cstring>
#include <vector>

#include "client/mujoco/fields.h"

namespace sap::mujoco {
namespace {

constexpr int kWithoutSensors = 1;
constexpr double kAnyAnswer = 1e30;  // as a relative tolerance

// A copy of the struct mjModel, with other options.
class ModelCopy {
 public:
  ModelCopy(const sap_mujoco_field* table, const void* model)
      : table_(table), bytes_(static_cast<size_t>(table[row::bytes_of_mjModel].size)) {
    std::memcpy(bytes_.data(), model, bytes_.size());
  }

  template <typename Value>
  void Set(row::Row option, Value value) {
    std::memcpy(bytes_.data() + table_[option].offset, &value, sizeof value);
  }

  void Disable(int flag) {
    Set(row::disableflags,
        static_cast<int32_t>(ReadInteger(table_[row::disableflags], get(), nullptr)) | flag);
  }

  const void* get() const { return bytes_.data(); }

 private:
  const sap_mujoco_field* table_;
  std::vector<std::byte> bytes_;
};

// What a stage is called with.
struct Context {
  const MujocoCalls& calls;
  const void* model;
  const void* copy;
  void* data;
};

void BuildMetric(void* context) {
  const auto& c = *static_cast<Context*>(context);
  c.calls.build_metric(c.model, c.data, 1, 1);
}

void Forward(void* context) {
  const auto& c = *static_cast<Context*>(context);
  c.calls.forward_skip(c.copy, c.data, mjSTAGE_VEL, kWithoutSensors);
  if (c.copy != c.model) c.calls.acceleration(c.model, c.data);  // to the tolerance of the model
}

void Advance(void* context) {
  const auto& c = *static_cast<Context*>(context);
  c.calls.euler(c.copy, c.data);
}

}  // namespace

EngineStatus RebuildMetric(const MujocoCalls& calls, const void* model, void* data) {
  Context context = {calls, model, model, data};
  return calls.Run(&BuildMetric, &context);
}

EngineStatus ComputeDiscreteForces(const MujocoCalls& calls, const void* model, void* data) {
  ModelCopy copy(calls.fields, model);
  copy.Set(row::iterations, 1);
  copy.Set(row::tolerance, kAnyAnswer);
  copy.Set(row::solver, mjSOL_CG);  // Newton's method factors before its first iteration
  copy.Disable(mjDSBL_WARMSTART);
  Context context = {calls, model, calls.HasCallbacksOfActuation() ? model : copy.get(), data};
  return calls.Run(&Forward, &context);
}

EngineStatus AdvanceDiscretely(const MujocoCalls& calls, const void* model, void* data) {
  ModelCopy copy(calls.fields, model);
  copy.Set(row::integrator, mjINT_EULER);
  copy.Disable(mjDSBL_EULERDAMP);
  Context context = {calls, model, copy.get(), data};
  return calls.Run(&Advance, &context);
}

}  // namespace sap::mujoco
