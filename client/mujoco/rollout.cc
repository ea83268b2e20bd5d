#include "client/mujoco/rollout.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "client/mujoco/constraint_stage.h"
#include "client/mujoco/state_pool.h"

namespace sap::mujoco {
namespace {

// Warnings of MuJoCo of a state, as bits; `warning` has pairs of a detail and a number.
int32_t WarningsOf(const Fields& fields) {
  int32_t bits = 0;
  for (size_t i = 1; i < fields.warning.size(); i += 2) {
    if (fields.warning[i] != 0) bits |= int32_t{1} << (i / 2);
  }
  return bits;
}

struct Environment {
  int64_t number;
  const void* model;
  void* data;
};

class Rollout {
 public:
  Rollout(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
          const StepSettings& settings)
      : solver_(solver),
        arrays_(arrays),
        settings_(settings),
        outcomes_(static_cast<size_t>(arrays.environments)),
        states_(solver->calls) {}

  sap_mujoco_outcome Run() {
    const std::vector<int64_t> equal(outcomes_.size(), 1);
    solver_->engine.WithThreads(std::max(arrays_.threads, 1))
        ->ForLargestFirst(equal, [this](int i) { RunOne(i); });
    if (arrays_.outcomes != nullptr) std::ranges::copy(outcomes_, arrays_.outcomes);
    return Sum();
  }

 private:
  bool IsStopped() const { return arrays_.stop != nullptr && *arrays_.stop != 0; }

  Fields Read(const Environment& e) const {
    return ReadFields(solver_->calls.fields, e.model, e.data);
  }

  void RunOne(int64_t i) {
    const void* const model = arrays_.model[i];
    if (arrays_.data != nullptr) return RunAll({i, model, arrays_.data[i]});
    const auto data = states_.Take(model);
    if (!data) return End(i, 0, data.error());
    solver_->calls.set_state(model, *data, arrays_.initial_state + i * arrays_.state_size,
                             arrays_.state_kind);
    RunAll({i, model, *data});
    states_.Return(model, *data);
  }

  // All steps of an environment, or those up to MuJoCo's first warning.
  void RunAll(const Environment& e) {
    const bool ends_at_warning = arrays_.warned_in != nullptr;
    if (ends_at_warning) std::ranges::fill(Read(e).warning, 0);
    int64_t taken = 0;
    bool has_warned = false;
    while (taken < arrays_.steps && !has_warned) {
      if (IsStopped()) {
        End(e.number, taken, {EngineErrorCode::kCancelled, "the rollout was stopped", ""});
        break;
      }
      if (!StepOnce(e, taken)) break;
      ++taken;
      has_warned = ends_at_warning && WarningsOf(Read(e)) != 0;
    }
    if (has_warned) {
      for (int64_t step = taken; step < arrays_.steps; ++step) Record(e, step);
    }
    OutcomeOf(e.number).warnings = WarningsOf(Read(e));
    if (arrays_.taken != nullptr) arrays_.taken[e.number] = taken;
    if (ends_at_warning) arrays_.warned_in[e.number] = has_warned ? taken - 1 : arrays_.steps;
  }

  bool StepOnce(const Environment& e, int64_t step) {
    if (arrays_.control != nullptr) {
      const double* control = arrays_.control + PlaceOf(e, step) * arrays_.control_size;
      solver_->calls.set_state(e.model, e.data, control, arrays_.control_kind);
    }
    auto outcome = Advance(e);
    const bool is_refused = !outcome && outcome.error().code == EngineErrorCode::kInvalidArgument;
    if (is_refused && arrays_.warned_in != nullptr && LetMujocoReset(e)) {
      outcome = Advance(e);
      if (!outcome) return Record(e, step), true;  // it was not reset, and stays where it is
    }
    if (!outcome) return End(e.number, step, outcome.error()), false;
    Certify(e, step, *outcome);
    if (outcome->unsolved > 0 && !settings_.takes_unsolved) {
      End(e.number, step, {EngineErrorCode::kFailedPrecondition, "an island was not solved", ""});
      return false;
    }
    Record(e, step);
    return true;
  }

  tl::expected<StepOutcome, EngineError> Advance(const Environment& e) const {
    return Step(solver_->calls, e.model, e.data, settings_);
  }

  bool LetMujocoReset(const Environment& e) const {
    return LetMujocoResetUnstable(solver_->calls, e.model, e.data).value_or(false);
  }

  // Writes how a step was solved.
  void Certify(const Environment& e, int64_t step, const StepOutcome& found) {
    AddCounts(&OutcomeOf(e.number), found);
    if (arrays_.certificates != nullptr) arrays_.certificates[PlaceOf(e, step)] = found;
  }

  // Writes what is wanted of the state after a step.
  void Record(const Environment& e, int64_t step) const {
    if (arrays_.state != nullptr) {
      double* state = arrays_.state + PlaceOf(e, step) * arrays_.state_size;
      solver_->calls.get_state(e.model, e.data, state, arrays_.state_kind);
    }
    if (arrays_.sensordata == nullptr) return;
    const Fields fields = Read(e);
    std::copy_n(fields.sensordata, fields.nsensordata,
                arrays_.sensordata + PlaceOf(e, step) * fields.nsensordata);
  }

  void End(int64_t number, int64_t step, const EngineError& error) {
    sap_mujoco_outcome& outcome = OutcomeOf(number);
    outcome.code = static_cast<int32_t>(error.code);
    outcome.step = step;
    std::snprintf(outcome.message, sizeof outcome.message, "%s", error.message.c_str());
  }

  // Errors come before those of a rollout that was stopped.
  sap_mujoco_outcome Sum() const {
    constexpr auto kCancelled = static_cast<int32_t>(EngineErrorCode::kCancelled);
    sap_mujoco_outcome sum = {};
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      const sap_mujoco_outcome& one = outcomes_[i];
      AddCounts(&sum, one);
      sum.warnings |= one.warnings;
      const bool is_first = sum.code == 0 || (sum.code == kCancelled && one.code != kCancelled);
      if (one.code == 0 || !is_first) continue;
      sum.code = one.code;
      sum.environment = static_cast<int64_t>(i);
      sum.step = one.step;
      std::ranges::copy(one.message, sum.message);
    }
    return sum;
  }

  sap_mujoco_outcome& OutcomeOf(int64_t number) { return outcomes_[static_cast<size_t>(number)]; }

  int64_t PlaceOf(const Environment& e, int64_t step) const {
    return e.number * arrays_.steps + step;
  }

  const sap_mujoco* const solver_;
  const sap_mujoco_rollout_arrays& arrays_;
  const StepSettings settings_;
  std::vector<sap_mujoco_outcome> outcomes_;  // of each environment
  StatePool states_;
};

}  // namespace

sap_mujoco_outcome RollOut(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
                           const StepSettings& settings) {
  return Rollout(solver, arrays, settings).Run();
}

}  // namespace sap::mujoco
