#include <cstdio>
#include <string>

#include "client/mujoco/constraint_stage.h"
#include "client/mujoco/rollout.h"
#include "client/mujoco/sap_mujoco.h"
#include "client/mujoco/sap_mujoco_handle.h"
#include "client/mujoco/stepper.h"

namespace sap::mujoco {

StepSettings SettingsOf(const sap_mujoco_settings* given) {
  constexpr double kConvergedTolerance = 1e-10;  // of MuJoCo's law
  StepSettings settings;
  if (given == nullptr) return settings;
  settings.is_replaced = given->law == SAP_MUJOCO_RUN;
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

namespace {

int32_t RunOnce(decltype(&Step) function, const sap_mujoco* solver, const void* model, void* data,
                const sap_mujoco_settings* given, sap_mujoco_outcome* outcome) {
  const auto run = function(solver->calls, model, data, SettingsOf(given));
  if (!run) return Refuse(run.error().code, run.error().message, outcome);
  *outcome = {};
  AddCounts(outcome, *run);
  return 0;
}

}  // namespace

int32_t Refuse(EngineErrorCode code, const std::string& message, sap_mujoco_outcome* outcome) {
  *outcome = {};
  outcome->code = static_cast<int32_t>(code);
  std::snprintf(outcome->message, sizeof outcome->message, "%s", message.c_str());
  return outcome->code;
}

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
  return sap::mujoco::RunOnce(&sap::mujoco::Forward, solver, model, data, settings, outcome);
}

int32_t sap_mujoco_step(const sap_mujoco* solver, const void* model, void* data,
                        const sap_mujoco_settings* settings, sap_mujoco_outcome* outcome) {
  return sap::mujoco::RunOnce(&sap::mujoco::Step, solver, model, data, settings, outcome);
}

int32_t sap_mujoco_rollout(const sap_mujoco* solver, const sap_mujoco_rollout_arrays* arrays,
                           const sap_mujoco_settings* settings, sap_mujoco_outcome* outcome) {
  using Outcome = tl::expected<sap_mujoco_outcome, sap::EngineError>;
  const auto run = sap::CatchExceptions([&]() -> Outcome {
    return sap::mujoco::RollOut(solver, *arrays, sap::mujoco::SettingsOf(settings));
  });
  if (!run) return sap::mujoco::Refuse(run.error().code, run.error().message, outcome);
  *outcome = *run;
  return outcome->code;
}
