#include "client/mujoco/discrete_stages.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "client/mujoco/effective_metric.h"
#include "client/mujoco/fields.h"
#include "client/mujoco/model_copy.h"

namespace sap::mujoco {
namespace {

constexpr int kWithoutSensors = 1;
constexpr int kWithContacts = 1;
constexpr double kAnyAnswer = 1e30;  // as a relative tolerance

// Whether MuJoCo's metric is that of its arrays, by a product with both.
EngineStatus CheckMetric(const MujocoCalls& calls, const void* model, void* data) {
  constexpr double kRounding = 1e-10;
  const Fields fields = ReadFields(calls.fields, model, data);
  const auto nv = static_cast<size_t>(fields.nv);
  std::vector<double> x(nv);
  for (size_t i = 0; i < nv; ++i) x[i] = std::sin(static_cast<double>(i + 1));
  std::vector<double> known(nv);
  std::vector<double> whole(nv);
  MultiplyMetric(fields, x.data(), known.data());
  EngineStatus run =
      calls.Run([&] { calls.multiply_metric(model, data, whole.data(), x.data(), kWithContacts); });
  if (!run) return run;
  double largest = 0.0;
  double difference = 0.0;
  for (size_t i = 0; i < nv; ++i) {
    largest = std::max(largest, std::abs(whole[i]));
    difference = std::max(difference, std::abs(whole[i] - known[i]));
  }
  if (difference <= kRounding * largest) return {};
  return RefuseField("model",
                     "has a flex of which the integrator discrete does not list all terms");
}

}  // namespace

EngineStatus ComputeDiscreteForces(const MujocoCalls& calls, const void* model, void* data) {
  ModelCopy copy(calls.fields, model);
  copy.Set(row::iterations, 1);
  copy.Set(row::tolerance, kAnyAnswer);
  copy.Set(row::solver, mjSOL_CG);  // Newton's method factors before its first iteration
  copy.Disable(mjDSBL_WARMSTART);
  const void* solved = calls.HasCallbacksOfActuation() ? model : copy.get();
  EngineStatus run = calls.Run([&] {
    calls.forward_skip(solved, data, mjSTAGE_VEL, kWithoutSensors);
    if (solved != model) calls.acceleration(model, data);  // to the tolerance of the model
  });
  const bool has_flexes = ReadInteger(calls.fields[row::nflex], model, data) > 0;
  return run && has_flexes ? CheckMetric(calls, model, data) : run;
}

EngineStatus AdvanceDiscretely(const MujocoCalls& calls, const void* model, void* data) {
  ModelCopy copy(calls.fields, model);
  copy.Set(row::integrator, mjINT_EULER);
  copy.Disable(mjDSBL_EULERDAMP);
  return calls.Run([&] { calls.euler(copy.get(), data); });
}

}  // namespace sap::mujoco
