#include "client/mujoco/step_stages.h"

#include <algorithm>
#include <vector>

#include "client/mujoco/discrete_stages.h"
#include "client/mujoco/effective_metric.h"
#include "client/mujoco/fluid.h"
#include "client/mujoco/problem_writer.h"
#include "client/mujoco/stage_outputs.h"

namespace sap::mujoco {
namespace {

constexpr int32_t kInGap = 1;  // `exclude` of a contact beyond its margin

// Arguments of guarded MuJoCo calls. Trivially destructible, since MuJoCo's errors leave by
// longjmp.
struct State {
  const MujocoCalls& calls;
  const void* model;
  void* data;
  const Fields* fields = nullptr;  // before these calls
  bool as_sap = false;
  bool calls_control = true;
  double* position = nullptr;        // [nq] memory
  const double* velocity = nullptr;  // [nv]
};

int64_t ReadOption(const State& s, row::Row option) {
  return ReadInteger(s.calls.fields[option], s.model, s.data);
}

EngineStatus RunGuarded(State state, void (*stages)(void* context)) {
  return state.calls.Run(stages, &state);
}

// Contacts in the gap have constraints under the law of SAP.
void TakeContactsInGap(const State& s) {
  const Fields fields = ReadFields(s.calls.fields, s.model, s.data);
  bool is_found = false;
  for (int64_t i = 0; i < fields.ncon; ++i) {
    auto* exclude = const_cast<int32_t*>(fields.contact_exclude(i));
    if (*exclude != kInGap) continue;
    *exclude = 0;
    is_found = true;
  }
  if (is_found) s.calls.RemakeConstraints(s.model, s.data);
}

void Position(void* context) {
  const auto& s = *static_cast<State*>(context);
  s.calls.position(s.model, s.data);
  if (s.as_sap) TakeContactsInGap(s);
}

void Remake(void* context) {
  const auto& s = *static_cast<State*>(context);
  s.calls.RemakeConstraints(s.model, s.data);
}

// Not under `discrete`.
void Force(void* context) {
  const auto& s = *static_cast<State*>(context);
  const bool is_actuated = !(ReadOption(s, row::disableflags) & mjDSBL_ACTUATION);
  if (s.calls_control && is_actuated && *s.calls.control_callback != nullptr) {
    (*s.calls.control_callback)(s.model, s.data);
  }
  s.calls.actuation(s.model, s.data);
  s.calls.acceleration(s.model, s.data);
}

// All but the forces.
void PositionAndVelocity(void* context) {
  const auto& s = *static_cast<State*>(context);
  const bool has_energy = (s.fields->enableflags & mjENBL_ENERGY) != 0;
  s.calls.check_position(s.model, s.data);
  s.calls.check_velocity(s.model, s.data);
  Position(context);
  s.calls.position_sensors(s.model, s.data);
  if (has_energy) {
    s.calls.position_energy(s.model, s.data);
  } else {
    std::ranges::fill(s.fields->energy, 0.0);
  }
  s.calls.velocity(s.model, s.data);
  s.calls.velocity_sensors(s.model, s.data);
  if (has_energy) s.calls.velocity_energy(s.model, s.data);
}

void AccelerationSensors(void* context) {
  const auto& s = *static_cast<State*>(context);
  const Fields& fields = *s.fields;
  if (fields.nefc > 0) {
    s.calls.multiply_transpose(s.model, s.data, fields.qfrc_constraint, fields.efc_force);
  }
  s.calls.acceleration_sensors(s.model, s.data);
}

void WarnOfAcceleration(void* context) {
  const auto& s = *static_cast<State*>(context);
  s.calls.check_acceleration(s.model, s.data);
}

void IntegrateByMujoco(void* context) {
  const auto& s = *static_cast<State*>(context);
  const int64_t integrator = s.fields->integrator;
  const bool is_implicit = integrator == mjINT_IMPLICIT || integrator == mjINT_IMPLICITFAST;
  (is_implicit ? s.calls.implicit : s.calls.euler)(s.model, s.data);
}

// mj_Euler is called for the activations and the time: it adds its own implicit damping to the
// motion.
void IntegrateAsSap(void* context) {
  const auto& s = *static_cast<State*>(context);
  const Fields& fields = *s.fields;
  std::copy_n(fields.qpos, fields.nq, s.position);
  s.calls.euler(s.model, s.data);
  std::copy_n(s.position, fields.nq, fields.qpos);
  for (int64_t i = 0; i < fields.nv; ++i) {
    if (fields.tree_asleep[fields.dof_treeid[i]] < 0) fields.qvel[i] = s.velocity[i];
  }
  s.calls.integrate_position(s.model, fields.qpos, fields.qvel, fields.timestep);
}

}  // namespace

EngineStatus ComputePositions(const MujocoCalls& calls, const void* model, void* data,
                              bool as_sap) {
  return RunGuarded({.calls = calls, .model = model, .data = data, .as_sap = as_sap}, &Position);
}

EngineStatus RemakeConstraints(const MujocoCalls& calls, const void* model, void* data) {
  return RunGuarded({.calls = calls, .model = model, .data = data}, &Remake);
}

EngineStatus ComputeForces(const MujocoCalls& calls, const void* model, void* data, bool as_sap,
                           bool calls_control) {
  const State state = {
      .calls = calls, .model = model, .data = data, .calls_control = calls_control};
  if (IsDiscrete(ReadOption(state, row::integrator))) {
    return ComputeDiscreteForces(calls, model, data);
  }
  EngineStatus run = RunGuarded(state, &Force);
  return run && as_sap ? ComputeFluidSlopes(calls, model, data) : run;
}

EngineStatus ComputeAll(const MujocoCalls& calls, const void* model, void* data, bool as_sap) {
  const Fields fields = ReadFields(calls.fields, model, data);
  EngineStatus run = RunGuarded(
      {.calls = calls, .model = model, .data = data, .fields = &fields, .as_sap = as_sap},
      &PositionAndVelocity);
  return run ? ComputeForces(calls, model, data, as_sap, true) : run;
}

void StoreSolution(const Fields& fields, const sap_mujoco_problem& problem,
                   const ContactSolution& solution) {
  for (int64_t i = 0; i < fields.nv; ++i) {
    fields.qacc[i] = (solution.velocity[i] - fields.qvel[i]) / fields.timestep;
  }
  StoreForces(fields, problem, solution);
  if (fields.nefc == 0) std::fill_n(fields.qfrc_constraint, fields.nv, 0.0);
  std::ranges::fill(fields.flg_rnepost, 0);  // cfrc_ext is that of the step before
}

EngineStatus FinishForward(const MujocoCalls& calls, const void* model, void* data,
                           const Fields& fields, const ContactSolution& solution) {
  EngineStatus run = RunGuarded({.calls = calls, .model = model, .data = data, .fields = &fields},
                                &AccelerationSensors);
  if (!run) return run;
  StoreIslandArrays(fields, calls.is_sparse(model) != 0);
  StoreIterations(fields, solution);
  return {};
}

EngineStatus CheckAcceleration(const MujocoCalls& calls, const void* model, void* data) {
  return RunGuarded({.calls = calls, .model = model, .data = data}, &WarnOfAcceleration);
}

EngineStatus Integrate(const MujocoCalls& calls, const void* model, void* data,
                       const Fields& fields, bool as_sap, const double* velocity) {
  State state = {
      .calls = calls, .model = model, .data = data, .fields = &fields, .velocity = velocity};
  if (IsDiscrete(fields)) return AdvanceDiscretely(calls, model, data);
  if (!as_sap) return RunGuarded(state, &IntegrateByMujoco);
  std::vector<double> position(static_cast<size_t>(fields.nq));
  state.position = position.data();
  return RunGuarded(state, &IntegrateAsSap);
}

}  // namespace sap::mujoco
