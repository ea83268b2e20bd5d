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

// Within MujocoCalls::Run, as the next one.
void TakeContactsInGap(const MujocoCalls& calls, const void* model, void* data) {
  const Fields fields = ReadFields(calls.fields, model, data);
  bool is_found = false;
  for (int64_t i = 0; i < fields.ncon; ++i) {
    auto* exclude = const_cast<int32_t*>(fields.contact_exclude(i));
    if (*exclude != kInGap) continue;
    *exclude = 0;
    is_found = true;
  }
  if (is_found) calls.RemakeConstraints(model, data);
}

void RunPositions(const MujocoCalls& calls, const void* model, void* data, bool as_sap) {
  calls.position(model, data);
  if (as_sap) TakeContactsInGap(calls, model, data);
}

}  // namespace

EngineStatus ComputePositions(const MujocoCalls& calls, const void* model, void* data,
                              bool as_sap) {
  return calls.Run([&] { RunPositions(calls, model, data, as_sap); });
}

EngineStatus RemakeConstraints(const MujocoCalls& calls, const void* model, void* data) {
  return calls.Run([&] { calls.RemakeConstraints(model, data); });
}

EngineStatus ComputeForces(const MujocoCalls& calls, const void* model, void* data, bool as_sap,
                           bool calls_control) {
  const auto option = [&](row::Row row) { return ReadInteger(calls.fields[row], model, data); };
  if (IsDiscrete(option(row::integrator))) return ComputeDiscreteForces(calls, model, data);
  const bool is_actuated = !(option(row::disableflags) & mjDSBL_ACTUATION);
  const MujocoCalls::Stage control = *calls.control_callback;
  EngineStatus run = calls.Run([&] {
    if (calls_control && is_actuated && control != nullptr) control(model, data);
    calls.actuation(model, data);
    calls.acceleration(model, data);
  });
  return run && as_sap ? ComputeFluidSlopes(calls, model, data) : run;
}

EngineStatus ComputeAll(const MujocoCalls& calls, const void* model, void* data, bool as_sap) {
  const Fields fields = ReadFields(calls.fields, model, data);
  const bool has_energy = (fields.enableflags & mjENBL_ENERGY) != 0;
  EngineStatus run = calls.Run([&] {
    calls.check_position(model, data);
    calls.check_velocity(model, data);
    RunPositions(calls, model, data, as_sap);
    calls.position_sensors(model, data);
    if (has_energy) {
      calls.position_energy(model, data);
    } else {
      std::ranges::fill(fields.energy, 0.0);
    }
    calls.velocity(model, data);
    calls.velocity_sensors(model, data);
    if (has_energy) calls.velocity_energy(model, data);
  });
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
  EngineStatus run = calls.Run([&] {
    if (fields.nefc > 0) {
      calls.multiply_transpose(model, data, fields.qfrc_constraint, fields.efc_force);
    }
    calls.acceleration_sensors(model, data);
  });
  if (!run) return run;
  StoreIslandArrays(fields, calls.is_sparse(model) != 0);
  StoreIterations(fields, solution);
  return {};
}

EngineStatus CheckAcceleration(const MujocoCalls& calls, const void* model, void* data) {
  return calls.Run([&] { calls.check_acceleration(model, data); });
}

EngineStatus Integrate(const MujocoCalls& calls, const void* model, void* data,
                       const Fields& fields, bool as_sap, const double* velocity) {
  if (IsDiscrete(fields)) return AdvanceDiscretely(calls, model, data);
  if (!as_sap) {
    const bool is_implicit =
        fields.integrator == mjINT_IMPLICIT || fields.integrator == mjINT_IMPLICITFAST;
    return calls.Run([&] { (is_implicit ? calls.implicit : calls.euler)(model, data); });
  }
  // For the activations and the time: it adds its own implicit damping to the motion.
  const std::vector<double> position(fields.qpos, fields.qpos + fields.nq);
  EngineStatus run = calls.Run([&] { calls.euler(model, data); });
  if (!run) return run;
  std::ranges::copy(position, fields.qpos);
  for (int64_t i = 0; i < fields.nv; ++i) {
    if (fields.tree_asleep[fields.dof_treeid[i]] < 0) fields.qvel[i] = velocity[i];
  }
  return calls.Run(
      [&] { calls.integrate_position(model, fields.qpos, fields.qvel, fields.timestep); });
}

}  // namespace sap::mujoco
