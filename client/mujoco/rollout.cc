#include "client/mujoco/rollout.h"

#include <algorithm>
#include <cmath>
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

// Largest speed of a degree of freedom [m/s]; not a number if one is not.
double LargestSpeed(const Fields& fields) {
  double largest = 0.0;
  for (int64_t i = 0; i < fields.nv; ++i) {
    const double speed = fields.dof_length[i] * std::abs(fields.qvel[i]);
    if (!(speed <= largest)) largest = speed;
    if (std::isnan(largest)) break;
  }
  return largest;
}

class Rollout {
 public:
  Rollout(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
          const StepSettings& settings, const RolloutPart& part)
      : solver_(solver),
        arrays_(arrays),
        settings_(settings),
        part_(part),
        all_steps_(part.all_steps > 0 ? part.all_steps : part.first_step + arrays.steps),
        first_row_(part.first_step / part.every),
        rows_(RowsUntil(part.first_step + arrays.steps, part.every, all_steps_) - first_row_ +
              (part.has_row_of_end ? 1 : 0)),
        outcomes_(static_cast<size_t>(arrays.environments)),
        own_states_(solver->calls),
        states_(part.states != nullptr ? *part.states : own_states_) {}

  sap_mujoco_outcome Run() {
    if (arrays_.threads > 1) {
      const std::vector<int64_t> equal(outcomes_.size(), 1);
      solver_->engine.WithThreads(arrays_.threads)->ForLargestFirst(equal, [this](int i) {
        RunOne(i);
      });
    } else {
      for (int64_t i = 0; i < arrays_.environments; ++i) RunOne(i);
    }
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
    const bool is_row = part_.initial_kind == 0;
    const int64_t size = is_row ? arrays_.state_size : part_.initial_size;
    solver_->calls.set_state(model, *data, arrays_.initial_state + i * size,
                             is_row ? arrays_.state_kind : part_.initial_kind);
    RunAll({i, model, *data});
    states_.Return(model, *data);
  }

  // Steps an environment until it ends, or the part does.
  void RunAll(const Environment& e) {
    if (EndsAtWarning()) std::ranges::fill(Read(e).warning, 0);
    double rested = part_.rested != nullptr ? part_.rested[e.number] : 0.0;
    int64_t taken = 0;
    int32_t end = 0;
    while (end == 0 && taken < arrays_.steps && (taken == 0 || !IsLate())) {
      if (!TakeStep(e, taken)) {
        end = SAP_MUJOCO_END_FAILURE;
        break;
      }
      ++taken;
      end = EndAfterStep(e, &rested);
    }
    if (end == 0 && part_.first_step + taken == all_steps_) end = SAP_MUJOCO_END_STEPS;
    if (end > SAP_MUJOCO_END_STEPS) RecordEnd(e, taken, end);
    Finish(e, taken, end, rested);
  }

  bool EndsAtWarning() const { return arrays_.warned_in != nullptr; }

  bool IsLate() const {
    return part_.latest != RolloutPart::Clock::time_point::max() &&
           RolloutPart::Clock::now() > part_.latest;
  }

  bool TakeStep(const Environment& e, int64_t step) {
    if (IsStopped()) {
      End(e.number, step, {EngineErrorCode::kCancelled, "the rollout was stopped", ""});
      return false;
    }
    if (part_.begun != nullptr) {
      part_.begun->store(part_.first_position + step, std::memory_order_relaxed);
    }
    return StepOnce(e, step);
  }

  // 0: it goes on.
  int32_t EndAfterStep(const Environment& e, double* rested) const {
    if (EndsAtWarning() && WarningsOf(Read(e)) != 0) return SAP_MUJOCO_END_WARNING;
    return arrays_.rest_speed > 0.0 && IsAtRest(e, rested) ? SAP_MUJOCO_END_REST : 0;
  }

  void Finish(const Environment& e, int64_t taken, int32_t end, double rested) {
    OutcomeOf(e.number).end = end;
    OutcomeOf(e.number).warnings = WarningsOf(Read(e));
    if (arrays_.taken != nullptr) arrays_.taken[e.number] = taken;
    if (part_.rested != nullptr) part_.rested[e.number] = rested;
    if (EndsAtWarning()) {
      arrays_.warned_in[e.number] = end == SAP_MUJOCO_END_WARNING ? taken - 1 : arrays_.steps;
    }
    if (part_.final_state == nullptr) return;
    double* state = part_.final_state + e.number * part_.final_size;
    solver_->calls.get_state(e.model, e.data, state, part_.final_kind);
  }

  // Whether the environment has been slow for long enough after one more step. Sums of time steps
  // are rounded.
  bool IsAtRest(const Environment& e, double* rested) const {
    constexpr double kRounding = 1e-9;
    const Fields fields = Read(e);
    *rested = LargestSpeed(fields) < arrays_.rest_speed ? *rested + fields.timestep : 0.0;
    return *rested > 0.0 && *rested >= arrays_.rest_seconds * (1.0 - kRounding);
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

  // Records the state after a step of the part, if it has a row.
  void Record(const Environment& e, int64_t step) const {
    const int64_t taken = part_.first_step + step + 1;
    if (HasRow(taken)) RecordRow(e, RowsUntil(taken, part_.every, all_steps_) - first_row_ - 1);
  }

  // Records the last state of an environment that ends early.
  void RecordEnd(const Environment& e, int64_t taken, int32_t end) const {
    if (part_.has_row_of_end) {
      const int64_t all = part_.first_step + taken;
      if (all == 0 || !HasRow(all)) RecordRow(e, all / part_.every - first_row_);
    } else if (end != SAP_MUJOCO_END_FAILURE) {
      for (int64_t step = taken; step < arrays_.steps; ++step) Record(e, step);
    }
  }

  bool HasRow(int64_t taken) const { return taken % part_.every == 0 || taken == all_steps_; }

  void RecordRow(const Environment& e, int64_t row) const {
    const int64_t place = e.number * rows_ + row;
    if (arrays_.state != nullptr) {
      double* state = arrays_.state + place * arrays_.state_size;
      solver_->calls.get_state(e.model, e.data, state, arrays_.state_kind);
    }
    if (arrays_.sensordata == nullptr) return;
    const Fields fields = Read(e);
    std::copy_n(fields.sensordata, fields.nsensordata,
                arrays_.sensordata + place * fields.nsensordata);
  }

  void End(int64_t number, int64_t step, const EngineError& error) {
    sap_mujoco_outcome& outcome = OutcomeOf(number);
    outcome.code = static_cast<int32_t>(error.code);
    outcome.step = step;
    outcome.end = SAP_MUJOCO_END_FAILURE;
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
  const RolloutPart& part_;
  const int64_t all_steps_;
  const int64_t first_row_;
  const int64_t rows_;                        // from environment to environment
  std::vector<sap_mujoco_outcome> outcomes_;  // of each environment
  StatePool own_states_;
  StatePool& states_;
};

}  // namespace

sap_mujoco_outcome RollOut(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
                           const StepSettings& settings, const RolloutPart& part) {
  return Rollout(solver, arrays, settings, part).Run();
}

}  // namespace sap::mujoco
