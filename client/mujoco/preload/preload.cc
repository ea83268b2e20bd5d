// The functions that MuJoCo and its callers call in place of MuJoCo's own.
//
//   mj_fwdConstraint     solved here, or passed on to MuJoCo
//
// MuJoCo 3.14 to 3.17 has its constraint stage in a function that is not exported. There,
//
//   mj_fwdAcceleration   ends with nefc = 0, so that the stage that follows returns at once
//   mj_sensorAcc         begins with the solve; without sensors mj_forwardSkip ends with it
//
// MuJoCo's errors leave by longjmp: no frame that calls it has an object to destroy.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/mujoco/fields.h"
#include "client/mujoco/preload/got_slots.h"
#include "client/mujoco/preload/mujoco_library.h"
#include "client/mujoco/preload/replacement.h"
#include "client/mujoco/preload/report.h"
#include "client/mujoco/preload/solver_library.h"
#include "client/mujoco/timers.h"

#define SAP_IN_PLACE_OF_MUJOCO extern "C" __attribute__((visibility("default")))
SAP_IN_PLACE_OF_MUJOCO void mj_fwdConstraint(const void* model, void* data);
SAP_IN_PLACE_OF_MUJOCO void mj_fwdAcceleration(const void* model, void* data);
SAP_IN_PLACE_OF_MUJOCO void mj_sensorAcc(const void* model, void* data);
SAP_IN_PLACE_OF_MUJOCO void mj_forwardSkip(const void* model, void* data, int skip_stage,
                                           int skip_sensor);

namespace sap::mujoco {
namespace {

// Dofs below which an island is solved faster by MuJoCo, whatever else is true of it.
constexpr int64_t kLeastDofs = 200;

enum class When : int { kFaster, kAlways, kNever };

constinit std::atomic<When> chosen{When::kFaster};
constinit std::atomic<bool> is_started{false};
constinit pthread_once_t began = PTHREAD_ONCE_INIT;

// A thread whose steps are solved whatever is chosen: sap_replacement_use.
struct Use {
  SolveConstraints solve;  // null: none
  sap_mujoco_certificate* certificate;
};
constinit thread_local Use use{};

When Named(const char* name) {
  if (strcmp(name, "always") == 0) return When::kAlways;
  return strcmp(name, "never") == 0 ? When::kNever : When::kFaster;
}

void Begin() {
  const char* when = getenv("SAP_RUN_WHEN");
  const char* report = getenv("SAP_RUN_REPORT");
  if (when != nullptr) chosen.store(Named(when), std::memory_order_relaxed);
  if (report != nullptr) ShareReport(report);
  CountVersion(LoadedMujoco().version);
}

const MujocoLibrary& Mujoco() {
  pthread_once(&began, &Begin);
  return LoadedMujoco();
}

When ChosenWhen() {
  return use.solve != nullptr ? When::kFaster : chosen.load(std::memory_order_relaxed);
}

void CountStep(Outcome outcome, int64_t islands) {
  if (use.solve == nullptr) Count(outcome, islands);
}

int64_t LargestIsland(const sap_mujoco_field* fields, const void* model, const void* data) {
  const int64_t count = ReadInteger(fields[row::nisland], model, data);
  if (count == 0) return ReadInteger(fields[row::nv], model, data);
  const int32_t* dofs = ReadArray<int32_t>(fields[row::island_nv], model, data);
  int64_t largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = dofs[i] > largest ? dofs[i] : largest;
  return largest;
}

// kSolved: it is not passed on before an attempt.
Outcome Forecast(const MujocoLibrary& mujoco, const void* model, const void* data) {
  if (mujoco.fields == nullptr) return kVersion;
  const auto number = [&](row::Row row) { return ReadInteger(mujoco.fields[row], model, data); };
  const When when = ChosenWhen();
  if (number(row::nefc) == 0) return kUnconstrained;
  if (when == When::kNever) return kSwitchedOff;
  const bool is_discrete = number(row::integrator) > mjINT_IMPLICITFAST;
  if (is_discrete && number(row::nflex) > 0) return kFlexes;
  if (number(row::noslip_iterations) > 0) return kNoslip;
  const int64_t solver = number(row::solver);
  if (solver == mjSOL_PGS) return kPgs;
  if (solver != mjSOL_CG && solver != mjSOL_NEWTON) return kNoSolver;
  if (number(row::iterations) <= 0) return kNoIterations;
  if (when == When::kAlways) return kSolved;
  return LargestIsland(mujoco.fields, model, data) < kLeastDofs ? kFaster : kSolved;
}

Outcome OutcomeOf(int64_t islands) {
  if (islands >= 0) return kSolved;
  if (islands == SAP_MUJOCO_SLOWER) return kFaster;
  return islands == SAP_MUJOCO_MORE_ITERATIONS ? kMoreIterations : kUnsolved;
}

Timer* ConstraintTimer(const MujocoLibrary& mujoco, void* data) {
  const sap_mujoco_field& timer = mujoco.fields[row::timer];
  auto* first = static_cast<uint8_t*>(data) + timer.offset;
  return TimerAt({first, static_cast<size_t>(timer.size)}, mjTIMER_CONSTRAINT);
}

// Solves the constraints of a state, and counts it, or what it is passed on for.
bool Solve(const MujocoLibrary& mujoco, const void* model, void* data) {
  const double begin = mujoco.Now();
  const SolveConstraints solve = use.solve != nullptr ? use.solve : LoadSolver();
  int64_t islands = 0;
  Outcome outcome = kNoLibrary;
  if (solve != nullptr) {
    const bool is_always = ChosenWhen() == When::kAlways;
    const int32_t flags =
        (mujoco.is_sparse(model) ? SAP_MUJOCO_SPARSE : 0) | (is_always ? SAP_MUJOCO_ALWAYS : 0);
    islands = solve(mujoco.fields, model, data, flags, use.certificate);
    outcome = OutcomeOf(islands);
  }
  CountStep(outcome, islands);
  if (outcome != kSolved) return false;
  ConstraintTimer(mujoco, data)->duration += mujoco.Now() - begin;
  return true;
}

bool IsSolved(const MujocoLibrary& mujoco, const void* model, void* data) {
  const Outcome forecast = Forecast(mujoco, model, data);
  if (forecast == kSolved) {
    const bool is_solved = Solve(mujoco, model, data);
    if (is_solved) ++ConstraintTimer(mujoco, data)->number;
    return is_solved;
  }
  CountStep(forecast, 0);
  return false;
}

// A state within mj_forwardSkip or mj_step2, whose constraints are hidden from MuJoCo's own stage.
struct Hidden {
  const void* data;
  int32_t constraints;  // nefc; 0: not hidden
};
constinit thread_local Hidden hidden{};

int32_t* Constraints(const MujocoLibrary& mujoco, void* data) {
  return reinterpret_cast<int32_t*>(static_cast<std::byte*>(data) +
                                    mujoco.fields[row::nefc].offset);
}

void SolveHidden(const MujocoLibrary& mujoco, const void* model, void* data) {
  if (hidden.data != data || hidden.constraints == 0) return;
  *Constraints(mujoco, data) = hidden.constraints;
  hidden.constraints = 0;
  if (Solve(mujoco, model, data)) return;
  --ConstraintTimer(mujoco, data)->number;  // MuJoCo has counted the stage without constraints
  mujoco.fwd_constraint(model, data);
}

bool PutInPlace() {
  const NamedFunction functions[] = {
      {"mj_fwdConstraint", reinterpret_cast<void*>(&mj_fwdConstraint)},
      {"mj_fwdAcceleration", reinterpret_cast<void*>(&mj_fwdAcceleration)},
      {"mj_sensorAcc", reinterpret_cast<void*>(&mj_sensorAcc)},
      {"mj_forwardSkip", reinterpret_cast<void*>(&mj_forwardSkip)},
  };
  return WriteSlots(functions);
}

int32_t Start(const char* when, const char* report) {
  if (!IsMujocoLoaded()) return -1;
  Mujoco();
  if (report != nullptr) ShareReport(report);
  CountVersion(LoadedMujoco().version);
  is_started.store(true);
  chosen.store(Named(when), std::memory_order_relaxed);
  return PutInPlace() ? 0 : -1;
}

constinit bool is_in_place = false;
constinit pthread_once_t put_in_place = PTHREAD_ONCE_INIT;

// The steps of other threads stay MuJoCo's, unless this library was preloaded or started.
void PutInPlaceForUse() {
  if (!IsMujocoLoaded()) return;
  Mujoco();
  const void* first = dlsym(dlopen(nullptr, RTLD_NOW), "mj_fwdConstraint");
  const bool is_first = first == reinterpret_cast<const void*>(&mj_fwdConstraint);
  if (!is_first && !is_started.load()) chosen.store(When::kNever, std::memory_order_relaxed);
  is_in_place = PutInPlace();
}

}  // namespace
}  // namespace sap::mujoco

void mj_fwdConstraint(const void* model, void* data) {
  const auto& mujoco = sap::mujoco::Mujoco();
  if (!sap::mujoco::IsSolved(mujoco, model, data)) mujoco.fwd_constraint(model, data);
}

void mj_fwdAcceleration(const void* model, void* data) {
  using namespace sap::mujoco;
  const MujocoLibrary& mujoco = Mujoco();
  const bool is_within_step_2 = mujoco.IsInStep2(__builtin_return_address(0));
  mujoco.fwd_acceleration(model, data);
  if (!mujoco.has_hidden_stage) return;
  if (is_within_step_2) hidden = {data, 0};
  if (hidden.data != data) return;  // the program calls this function alone
  const Outcome forecast = Forecast(mujoco, model, data);
  if (forecast != kSolved) return CountStep(forecast, 0);
  hidden.constraints = *Constraints(mujoco, data);
  *Constraints(mujoco, data) = 0;
}

void mj_sensorAcc(const void* model, void* data) {
  const auto& mujoco = sap::mujoco::Mujoco();
  sap::mujoco::SolveHidden(mujoco, model, data);
  mujoco.sensor_acc(model, data);
}

void mj_forwardSkip(const void* model, void* data, int skip_stage, int skip_sensor) {
  using namespace sap::mujoco;
  const MujocoLibrary& mujoco = Mujoco();
  const Hidden outer = hidden;  // of a step whose callback steps another state
  hidden = {data, 0};
  mujoco.forward_skip(model, data, skip_stage, skip_sensor);
  SolveHidden(mujoco, model, data);
  hidden = outer;
}

int32_t sap_replacement_use(sap_replacement_solve solve, sap_mujoco_certificate* certificate) {
  using namespace sap::mujoco;
  if (solve != nullptr) {
    pthread_once(&put_in_place, &PutInPlaceForUse);
    if (!is_in_place) return -1;
  }
  use = {solve, certificate};
  return 0;
}

int32_t sap_replacement_start(const char* when, const char* report) {
  return sap::mujoco::Start(when, report);
}
