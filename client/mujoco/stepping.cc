#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

#include "client/mujoco/discrete_stages.h"
#include "client/mujoco/fluid.h"
#include "client/mujoco/handle.h"
#include "client/mujoco/sap_mujoco.h"
#include "client/mujoco/stepper.h"

namespace sap::mujoco {
namespace {

constexpr double kConvergedTolerance = 1e-10;  // of MuJoCo's law

using Method = tl::expected<StepOutcome, EngineError> (Stepper::*)(const MujocoCalls& calls,
                                                                   const void* model, void* data,
                                                                   const StepSettings& settings);

StepSettings SettingsOf(const sap_mujoco_settings* given) {
  StepSettings settings;
  if (given == nullptr) return settings;
  settings.as_sap = given->law != SAP_MUJOCO_MUJOCO;
  if (given->law == SAP_MUJOCO_COULOMB) settings.options.coulomb.emplace();
  settings.takes_unsolved = given->refuses_unsolved == 0;
  if (!settings.as_sap) settings.options.relative_tolerance = kConvergedTolerance;
  if (given->relative_tolerance > 0.0) {
    settings.options.relative_tolerance = given->relative_tolerance;
  }
  if (given->max_iterations > 0) settings.options.max_iterations = given->max_iterations;
  return settings;
}

int32_t Refuse(EngineErrorCode code, const std::string& message, sap_mujoco_outcome* outcome) {
  *outcome = {};
  std::snprintf(outcome->message, sizeof outcome->message, "%s", message.c_str());
  return static_cast<int32_t>(code);
}

// Runs a method in the memory of this thread, which an exception leaves undefined.
tl::expected<StepOutcome, EngineError> Run(Method method, const sap_mujoco* solver,
                                           const void* model, void* data,
                                           const StepSettings& settings) {
  static thread_local std::unique_ptr<Stepper> kept;
  return CatchExceptions([&]() -> tl::expected<StepOutcome, EngineError> {
    auto stepper = std::move(kept);
    if (stepper == nullptr) stepper = std::make_unique<Stepper>();
    auto outcome = (stepper.get()->*method)(solver->calls, model, data, settings);
    kept = std::move(stepper);
    return outcome;
  });
}

int32_t RunOnce(Method method, const sap_mujoco* solver, const void* model, void* data,
                const sap_mujoco_settings* given, sap_mujoco_outcome* outcome) {
  const auto run = Run(method, solver, model, data, SettingsOf(given));
  if (!run) return Refuse(run.error().code, run.error().message, outcome);
  *outcome = {};
  outcome->islands = run->islands;
  outcome->unsolved = run->unsolved;
  outcome->iterations = run->iterations;
  return 0;
}

using DiscreteStage = EngineStatus (*)(const MujocoCalls& calls, const void* model, void* data);

int32_t RunStage(DiscreteStage stage, const sap_mujoco* solver, const void* model, void* data,
                 sap_mujoco_outcome* outcome) {
  *outcome = {};
  const EngineStatus run = CatchExceptions([&] { return stage(solver->calls, model, data); });
  return run ? 0 : Refuse(run.error().code, run.error().message, outcome);
}

// Whether MuJoCo has warned of a state; `warning` has pairs of a detail and a number.
bool HasWarned(const Fields& fields) {
  for (size_t i = 1; i < fields.warning.size(); i += 2) {
    if (fields.warning[i] != 0) return true;
  }
  return false;
}

// State shared by the threads of a rollout.
class Rollout {
 public:
  Rollout(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
          const StepSettings& settings)
      : solver_(solver), arrays_(arrays), settings_(settings) {}

  int32_t Run(sap_mujoco_outcome* outcome) {
    const std::vector<int64_t> equal(static_cast<size_t>(arrays_.environments), 1);
    solver_->engine.WithThreads(std::max(arrays_.threads, 1))
        ->ForLargestFirst(equal, [this](int i) { RunAll(i); });
    *outcome = sum_;
    return kind_;
  }

 private:
  bool IsStopped() const {
    return (failed_ && arrays_.goes_on == 0) || (arrays_.stop != nullptr && *arrays_.stop != 0);
  }

  Fields Read(int64_t i) const {
    return ReadFields(solver_->calls.fields, arrays_.model[i], arrays_.data[i]);
  }

  // All steps of an environment, or those up to MuJoCo's first warning.
  void RunAll(int64_t i) {
    const bool ends_at_warning = arrays_.warned_in != nullptr;
    if (ends_at_warning) std::ranges::fill(Read(i).warning, 0);
    int64_t taken = 0;
    bool has_warned = false;
    while (taken < arrays_.steps && !has_warned) {
      if (IsStopped()) {
        Stop(i, taken, {EngineErrorCode::kCancelled, "the rollout was stopped", ""});
        break;
      }
      if (!StepOnce(i, taken)) break;
      ++taken;
      has_warned = ends_at_warning && HasWarned(Read(i));
    }
    if (has_warned) {
      for (int64_t step = taken; step < arrays_.steps; ++step) Record(i, step);
    }
    if (arrays_.taken != nullptr) arrays_.taken[i] = taken;
    if (ends_at_warning) arrays_.warned_in[i] = has_warned ? taken - 1 : arrays_.steps;
  }

  bool StepOnce(int64_t i, int64_t step) {
    if (arrays_.control != nullptr) {
      const int64_t place = i * arrays_.steps + step;
      const double* control = arrays_.control + place * arrays_.control_size;
      solver_->calls.set_state(arrays_.model[i], arrays_.data[i], control, arrays_.control_kind);
    }
    auto outcome = Advance(i);
    const bool is_refused = !outcome && outcome.error().code == EngineErrorCode::kInvalidArgument;
    if (is_refused && arrays_.warned_in != nullptr && LetMujocoReset(i)) {
      outcome = Advance(i);
      if (!outcome) return Record(i, step), true;  // it was not reset, and stays where it is
    }
    if (!outcome) return Stop(i, step, outcome.error()), false;
    AddToSum(*outcome);
    if (outcome->unsolved > 0 && !settings_.takes_unsolved) {
      Stop(i, step, {EngineErrorCode::kFailedPrecondition, "an island was not solved", ""});
      return false;
    }
    Record(i, step);
    return true;
  }

  tl::expected<StepOutcome, EngineError> Advance(int64_t i) const {
    return mujoco::Run(&Stepper::Step, solver_, arrays_.model[i], arrays_.data[i], settings_);
  }

  bool LetMujocoReset(int64_t i) const {
    return LetMujocoResetUnstable(solver_->calls, arrays_.model[i], arrays_.data[i])
        .value_or(false);
  }

  void AddToSum(const StepOutcome& outcome) {
    const std::scoped_lock lock(mutex_);
    sum_.islands += outcome.islands;
    sum_.unsolved += outcome.unsolved;
    sum_.iterations = std::max<int64_t>(sum_.iterations, outcome.iterations);
  }

  // Writes what is wanted after a step.
  void Record(int64_t i, int64_t step) const {
    const int64_t place = i * arrays_.steps + step;
    if (arrays_.state != nullptr) {
      double* state = arrays_.state + place * arrays_.state_size;
      solver_->calls.get_state(arrays_.model[i], arrays_.data[i], state, arrays_.state_kind);
    }
    if (arrays_.sensordata == nullptr) return;
    const Fields fields = Read(i);
    std::copy_n(fields.sensordata, fields.nsensordata,
                arrays_.sensordata + place * fields.nsensordata);
  }

  // Keeps the error of the first environment that has one.
  void Stop(int64_t i, int64_t step, const EngineError& error) {
    const std::scoped_lock lock(mutex_);
    const bool is_first = !failed_.exchange(true);
    if (!is_first && (error.code == EngineErrorCode::kCancelled || i > sum_.environment)) return;
    kind_ = static_cast<int32_t>(error.code);
    std::snprintf(sum_.message, sizeof sum_.message, "%s", error.message.c_str());
    sum_.environment = i;
    sum_.step = step;
  }

  const sap_mujoco* const solver_;
  const sap_mujoco_rollout_arrays& arrays_;
  const StepSettings settings_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  sap_mujoco_outcome sum_{};
  int32_t kind_{0};
};

}  // namespace
}  // namespace sap::mujoco

int32_t sap_mujoco_open(const char* library, const sap_mujoco_field* fields, sap_mujoco** solver,
                        sap_mujoco_outcome* outcome) {
  auto calls = sap::mujoco::MujocoCalls::Find(library, fields);
  if (!calls) {
    return sap::mujoco::Refuse(sap::EngineErrorCode::kFailedPrecondition, calls.error(), outcome);
  }
  *outcome = {};
  *solver = new sap_mujoco{*calls, {}};
  return 0;
}

void sap_mujoco_close(sap_mujoco* solver) { delete solver; }

int32_t sap_mujoco_forward(const sap_mujoco* solver, const void* model, void* data,
                           const sap_mujoco_settings* settings, sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunOnce(&sap::mujoco::Stepper::Forward, solver, model, data, settings,
                              outcome);
}

int32_t sap_mujoco_step(const sap_mujoco* solver, const void* model, void* data,
                        const sap_mujoco_settings* settings, sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunOnce(&sap::mujoco::Stepper::Step, solver, model, data, settings, outcome);
}

int32_t sap_mujoco_rebuild_metric(const sap_mujoco* solver, const void* model, void* data,
                                  sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunStage(&sap::mujoco::RebuildMetric, solver, model, data, outcome);
}

int32_t sap_mujoco_compute_fluid_slopes(const sap_mujoco* solver, const void* model, void* data,
                                        sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunStage(&sap::mujoco::ComputeFluidSlopes, solver, model, data, outcome);
}

int32_t sap_mujoco_compute_discrete_forces(const sap_mujoco* solver, const void* model, void* data,
                                           sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunStage(&sap::mujoco::ComputeDiscreteForces, solver, model, data, outcome);
}

int32_t sap_mujoco_advance_discretely(const sap_mujoco* solver, const void* model, void* data,
                                      sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunStage(&sap::mujoco::AdvanceDiscretely, solver, model, data, outcome);
}

int32_t sap_mujoco_rollout(const sap_mujoco* solver, const sap_mujoco_rollout_arrays* arrays,
                           const sap_mujoco_settings* settings, sap_mujoco_outcome* outcome) {
  using sap::mujoco::Rollout;
  const auto run = sap::CatchExceptions([&]() -> tl::expected<int32_t, sap::EngineError> {
    return Rollout(solver, *arrays, sap::mujoco::SettingsOf(settings)).Run(outcome);
  });
  return run ? *run : sap::mujoco::Refuse(run.error().code, run.error().message, outcome);
}
