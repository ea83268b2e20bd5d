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
constexpr double kAnyAnswer = 1e30;  // as a relative tolerance

// Arguments of a stage.
struct Context {
  const MujocoCalls& calls;
  const void* model;
  const void* copy;
  void* data;
};

void Forward(void* context) {
  const auto& c = *static_cast<Context*>(context);
  c.calls.forward_skip(c.copy, c.data, mjSTAGE_VEL, kWithoutSensors);
  if (c.copy != c.model) c.calls.acceleration(c.model, c.data);  // to the tolerance of the model
}

// A product of the metric, by MuJoCo.
struct Product {
  const MujocoCalls& calls;
  const void* model;
  void* data;
  const double* x;
  double* product;
};

void Multiply(void* context) {
  const auto& c = *static_cast<Product*>(context);
  c.calls.multiply_metric(c.model, c.data, c.product, c.x, 1);
}

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
  Product product = {calls, model, data, x.data(), whole.data()};
  if (EngineStatus run = calls.Run(&Multiply, &product); !run) return run;
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

void Advance(void* context) {
  const auto& c = *static_cast<Context*>(context);
  c.calls.euler(c.copy, c.data);
}

}  // namespace

EngineStatus ComputeDiscreteForces(const MujocoCalls& calls, const void* model, void* data) {
  ModelCopy copy(calls.fields, model);
  copy.Set(row::iterations, 1);
  copy.Set(row::tolerance, kAnyAnswer);
  copy.Set(row::solver, mjSOL_CG);  // Newton's method factors before its first iteration
  copy.Disable(mjDSBL_WARMSTART);
  Context context = {calls, model, calls.HasCallbacksOfActuation() ? model : copy.get(), data};
  EngineStatus run = calls.Run(&Forward, &context);
  const bool has_flexes = ReadInteger(calls.fields[row::nflex], model, data) > 0;
  return run && has_flexes ? CheckMetric(calls, model, data) : run;
}

EngineStatus AdvanceDiscretely(const MujocoCalls& calls, const void* model, void* data) {
  ModelCopy copy(calls.fields, model);
  copy.Set(row::integrator, mjINT_EULER);
  copy.Disable(mjDSBL_EULERDAMP);
  Context context = {calls, model, copy.get(), data};
  return calls.Run(&Advance, &context);
}

}  // namespace sap::mujoco
