#include "client/mujoco/stepper.h"

#include <algorithm>
#include <memory>

#include "client/mujoco/constraint_stage.h"
#include "client/mujoco/replaced_step.h"
#include "client/mujoco/step_stages.h"
#include "client/mujoco/timers.h"

namespace sap::mujoco {
namespace {

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

}  // namespace

tl::expected<bool, EngineError> LetMujocoResetUnstable(const MujocoCalls& calls, const void* model,
                                                       void* data) {
  const Fields fields = ReadFields(calls.fields, model, data);
  bool is_unstable = false;
  EngineStatus run = calls.Run([&] {
    calls.forward_skip(model, data, mjSTAGE_NONE, 0);
    is_unstable = std::any_of(fields.qacc, fields.qacc + fields.nv, &IsBad);
    calls.check_acceleration(model, data);
  });
  if (!run) return tl::unexpected(run.error());
  return is_unstable;
}

EngineStatus Stepper::Build(const MujocoCalls& calls, const void* model, void* data, bool as_sap) {
  if ((ReadInteger(calls.fields[row::enableflags], model, data) & calls.ipc) != 0) {
    return RefuseField("model", "enables ipc, whose contacts are not those of a convex problem");
  }
  if (EngineStatus run = ComputeAll(calls, model, data, as_sap); !run) return run;
  fields_ = ReadFields(calls.fields, model, data);
  const auto now = calls.Now();
  if (!now) return tl::unexpected(now.error());
  solve_begin_ = *now;
  if (EngineStatus built = problem_.Build(calls, model, data, fields_, as_sap); !built) {
    return built;
  }
  return task_.Read(ViewOf(fields_, problem_.problem()));
}

tl::expected<StepOutcome, EngineError> Stepper::Forward(const MujocoCalls& calls, const void* model,
                                                        void* data, const StepSettings& settings) {
  const auto begin = calls.Now();
  if (!begin) return tl::unexpected(begin.error());
  EngineStatus done = Build(calls, model, data, settings.as_sap);
  if (done) {
    done = task_.Solve(&solver_, settings.options, CallLimits{}, SolveLimits{}, &solution_);
  }
  if (!done) return tl::unexpected(done.error());
  const StepOutcome outcome = Certify(solution_);
  if (outcome.unsolved > 0 && !settings.takes_unsolved) return outcome;
  StoreSolution(fields_, problem_.problem(), solution_);
  done = EndTimer(calls, mjTIMER_CONSTRAINT, solve_begin_);
  if (done) done = FinishForward(calls, model, data, fields_, solution_);
  if (done) done = EndTimer(calls, mjTIMER_FORWARD, *begin);
  if (!done) return tl::unexpected(done.error());
  return outcome;
}

EngineStatus Stepper::EndTimer(const MujocoCalls& calls, int timer, double begin) const {
  const auto end = calls.Now();
  if (!end) return tl::unexpected(end.error());
  AddToTimer(fields_.timer, timer, *end - begin);
  return {};
}

tl::expected<StepOutcome, EngineError> Stepper::Step(const MujocoCalls& calls, const void* model,
                                                     void* data, const StepSettings& settings) {
  const auto begin = calls.Now();
  if (!begin) return tl::unexpected(begin.error());
  auto outcome = Forward(calls, model, data, settings);
  if (!outcome || (outcome->unsolved > 0 && !settings.takes_unsolved)) return outcome;
  EngineStatus moved = CheckAcceleration(calls, model, data);
  if (moved) {
    moved = Integrate(calls, model, data, fields_, settings.as_sap, solution_.velocity.data());
  }
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
