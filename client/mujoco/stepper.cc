#include "client/mujoco/stepper.h"

#include <algorithm>
#include <memory>

#include "client/mujoco/constraint_stage.h"
#include "client/mujoco/discrete_stages.h"
#include "client/mujoco/effective_metric.h"
#include "client/mujoco/fluid.h"
#include "client/mujoco/replaced_step.h"
#include "client/mujoco/stage_outputs.h"
#include "client/mujoco/timers.h"

namespace sap::mujoco {
namespace {

constexpr int32_t kInGap = 1;  // `exclude` of a contact beyond its margin

// Arguments of guarded MuJoCo calls. Trivially destructible, since MuJoCo's errors leave by
// longjmp.
struct StageContext {
  const MujocoCalls& calls;
  const void* model;
  void* data;
  const Fields& fields;
  bool as_sap;
  double* result;  // of the product, and its vector
  const double* vector;
};

// Contacts in the gap have constraints under the law of SAP.
void TakeContactsInGap(const StageContext& c, const Fields& fields) {
  bool is_found = false;
  for (int64_t i = 0; i < fields.ncon; ++i) {
    auto* exclude = const_cast<int32_t*>(fields.contact_exclude(i));
    if (*exclude != kInGap) continue;
    *exclude = 0;
    is_found = true;
  }
  if (is_found) c.calls.RemakeConstraints(c.model, c.data);
}

// The stages of mj_step that precede its constraint solver; under `discrete` only positions and
// velocities.
void RunStages(void* context) {
  const auto& c = *static_cast<StageContext*>(context);
  const bool has_energy = (c.fields.enableflags & mjENBL_ENERGY) != 0;
  c.calls.check_position(c.model, c.data);
  c.calls.check_velocity(c.model, c.data);
  c.calls.position(c.model, c.data);
  if (c.as_sap) TakeContactsInGap(c, ReadFields(c.calls.fields, c.model, c.data));
  c.calls.position_sensors(c.model, c.data);
  if (has_energy) {
    c.calls.position_energy(c.model, c.data);
  } else {
    std::ranges::fill(c.fields.energy, 0.0);
  }
  c.calls.velocity(c.model, c.data);
  c.calls.velocity_sensors(c.model, c.data);
  if (has_energy) c.calls.velocity_energy(c.model, c.data);
  if (IsDiscrete(c.fields)) return;
  const bool is_actuated = !(c.fields.disableflags & mjDSBL_ACTUATION);
  if (is_actuated && *c.calls.control_callback != nullptr) {
    (*c.calls.control_callback)(c.model, c.data);
  }
  c.calls.actuation(c.model, c.data);
  c.calls.acceleration(c.model, c.data);
}

// Computes the quantities that depend on the forces of constraints.
void FinishForces(void* context) {
  const auto& c = *static_cast<StageContext*>(context);
  c.calls.multiply_transpose(c.model, c.data, c.result, c.vector);
  c.calls.acceleration_sensors(c.model, c.data);
}

void FinishWithoutForces(void* context) {
  const auto& c = *static_cast<StageContext*>(context);
  c.calls.acceleration_sensors(c.model, c.data);
}

// Integrates activations, velocities and positions, except those of `discrete`. Under the law of
// SAP mj_Euler is called for the activations and the time: it adds its own implicit damping to the
// motion.
void Integrate(void* context) {
  const auto& c = *static_cast<StageContext*>(context);
  c.calls.check_acceleration(c.model, c.data);
  if (IsDiscrete(c.fields)) return;
  if (!c.as_sap) {
    const bool is_implicit =
        c.fields.integrator == mjINT_IMPLICIT || c.fields.integrator == mjINT_IMPLICITFAST;
    return (is_implicit ? c.calls.implicit : c.calls.euler)(c.model, c.data);
  }
  std::copy_n(c.fields.qpos, c.fields.nq, c.result);
  c.calls.euler(c.model, c.data);
  std::copy_n(c.result, c.fields.nq, c.fields.qpos);
  for (int64_t i = 0; i < c.fields.nv; ++i) {
    if (c.fields.tree_asleep[c.fields.dof_treeid[i]] < 0) c.fields.qvel[i] = c.vector[i];
  }
  c.calls.integrate_position(c.model, c.fields.qpos, c.fields.qvel, c.fields.timestep);
}

struct Check {
  const MujocoCalls& calls;
  const void* model;
  void* data;
  const Fields& fields;
  bool is_unstable;
};

void ForwardAndCheck(void* context) {
  auto& c = *static_cast<Check*>(context);
  c.calls.forward_skip(c.model, c.data, mjSTAGE_NONE, 0);
  c.is_unstable = std::any_of(c.fields.qacc, c.fields.qacc + c.fields.nv, &IsBad);
  c.calls.check_acceleration(c.model, c.data);
}

thread_local std::unique_ptr<Stepper> kept;

// Lends the stepper of this thread, whose memory is undefined after an exception.
template <typename Body>
tl::expected<StepOutcome, EngineError> WithStepper(const Body& body) {
  return CatchExceptions([&]() -> tl::expected<StepOutcome, EngineError> {
    auto stepper = std::move(kept);
    if (stepper == nullptr) stepper = std::make_unique<Stepper>();
    auto outcome = body(*stepper);
    kept = std::move(stepper);
    return outcome;
  });
}

EngineStatus RunGuarded(StageContext context, void (*stages)(void* context)) {
  return context.calls.Run(stages, &context);
}

}  // namespace

tl::expected<bool, EngineError> LetMujocoResetUnstable(const MujocoCalls& calls, const void* model,
                                                       void* data) {
  const Fields fields = ReadFields(calls.fields, model, data);
  Check check = {calls, model, data, fields, false};
  if (EngineStatus run = calls.Run(&ForwardAndCheck, &check); !run) {
    return tl::unexpected(run.error());
  }
  return check.is_unstable;
}

EngineStatus Stepper::Build(const MujocoCalls& calls, const void* model, void* data, bool as_sap) {
  const Fields fields = ReadFields(calls.fields, model, data);
  if ((fields.enableflags & calls.ipc) != 0) {
    return RefuseField("model", "enables ipc, whose contacts are not those of a convex problem");
  }
  if (EngineStatus run =
          RunGuarded({calls, model, data, fields, as_sap, nullptr, nullptr}, &RunStages);
      !run) {
    return run;
  }
  if (IsDiscrete(fields)) {
    if (EngineStatus run = ComputeDiscreteForces(calls, model, data); !run) return run;
  } else if (as_sap) {
    if (EngineStatus run = ComputeFluidSlopes(calls, model, data); !run) return run;
  }
  fields_ = ReadFields(calls.fields, model, data);  // the stages have moved its arrays
  const auto now = calls.Now();
  if (!now) return tl::unexpected(now.error());
  solve_begin_ = *now;
  if (EngineStatus built = problem_.Build(calls, model, data, fields_, as_sap); !built) {
    return built;
  }
  return task_.Read(problem_.View(fields_));
}

tl::expected<StepOutcome, EngineError> Stepper::Forward(const MujocoCalls& calls, const void* model,
                                                        void* data, const StepSettings& settings) {
  const auto begin = calls.Now();
  if (!begin) return tl::unexpected(begin.error());
  if (EngineStatus built = Build(calls, model, data, settings.as_sap); !built) {
    return tl::unexpected(built.error());
  }
  EngineStatus solved =
      task_.Solve(&solver_, settings.options, CallLimits{}, SolveLimits{}, &solution_);
  if (!solved) return tl::unexpected(solved.error());
  const StepOutcome outcome = Certify(solution_);
  if (outcome.unsolved > 0 && !settings.takes_unsolved) return outcome;
  Store();
  if (fields_.nefc == 0) std::fill_n(fields_.qfrc_constraint, fields_.nv, 0.0);
  if (EngineStatus timed = EndTimer(calls, mjTIMER_CONSTRAINT, solve_begin_); !timed) {
    return tl::unexpected(timed.error());
  }
  EngineStatus finished = RunGuarded(
      {calls, model, data, fields_, settings.as_sap, fields_.qfrc_constraint, fields_.efc_force},
      fields_.nefc > 0 ? &FinishForces : &FinishWithoutForces);
  if (!finished) return tl::unexpected(finished.error());
  StoreIslandArrays(fields_, calls.is_sparse(model) != 0);
  StoreIterations(fields_, solution_);
  if (EngineStatus timed = EndTimer(calls, mjTIMER_FORWARD, *begin); !timed) {
    return tl::unexpected(timed.error());
  }
  return outcome;
}

EngineStatus Stepper::EndTimer(const MujocoCalls& calls, int timer, double begin) const {
  const auto end = calls.Now();
  if (!end) return tl::unexpected(end.error());
  AddToTimer(fields_.timer, timer, *end - begin);
  return {};
}

void Stepper::Store() {
  for (int64_t i = 0; i < fields_.nv; ++i) {
    fields_.qacc[i] = (solution_.velocity[i] - fields_.qvel[i]) / fields_.timestep;
  }
  problem_.Store(fields_, solution_);
  std::ranges::fill(fields_.flg_rnepost, 0);  // cfrc_ext is that of the step before
}

tl::expected<StepOutcome, EngineError> Stepper::Step(const MujocoCalls& calls, const void* model,
                                                     void* data, const StepSettings& settings) {
  const auto begin = calls.Now();
  if (!begin) return tl::unexpected(begin.error());
  auto outcome = Forward(calls, model, data, settings);
  if (!outcome || (outcome->unsolved > 0 && !settings.takes_unsolved)) return outcome;
  position_.resize(static_cast<size_t>(fields_.nq));
  EngineStatus moved = RunGuarded(
      {calls, model, data, fields_, settings.as_sap, position_.data(), solution_.velocity.data()},
      &Integrate);
  if (moved && IsDiscrete(fields_)) moved = AdvanceDiscretely(calls, model, data);
  if (moved) moved = EndTimer(calls, mjTIMER_STEP, *begin);
  if (!moved) return tl::unexpected(moved.error());
  return outcome;
}

tl::expected<StepOutcome, EngineError> Step(const MujocoCalls& calls, const void* model, void* data,
                                            const StepSettings& settings) {
  if (settings.is_replaced) return RunReplaced(calls, calls.step, model, data);
  return WithStepper([&](Stepper& stepper) { return stepper.Step(calls, model, data, settings); });
}

tl::expected<StepOutcome, EngineError> Forward(const MujocoCalls& calls, const void* model,
                                               void* data, const StepSettings& settings) {
  if (settings.is_replaced) return RunReplaced(calls, calls.forward, model, data);
  return WithStepper(
      [&](Stepper& stepper) { return stepper.Forward(calls, model, data, settings); });
}

}  // namespace sap::mujoco
