#include "server/service/session.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "server/service/failure_encoder.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

const v1::ContactProblem* ProblemOf(const v1::SessionStep& step) {
  return step.has_problem() ? &step.problem() : nullptr;
}

}  // namespace

Session::~Session() {
  (void)shared_.admission->KeepBytes(shared_.account, -kept_bytes_ - velocity_bytes_);
  shared_.heap_trimmer->Freed(kept_bytes_ + velocity_bytes_);
  shared_.admission->ReleaseSession(shared_.account);
}

ServiceStatus Session::Open(const v1::OpenSession& request) {
  const auto settings = DecodeOptions(request.options(), shared_.config);
  if (!settings) return tl::unexpected(settings.error());
  options_ = request.options();
  low_latency_ = request.low_latency() && shared_.idle_spinners->Start();
  if (low_latency_) shared_.idle_spinners->KeepSpinning();
  return {};
}

bool Session::StartStep(const v1::SessionStep& step, const CallContext& call,
                        v1::StepOutcome* outcome, Done done, void* context) {
  Begin(step, call, outcome);
  done_ = done;
  context_ = context;
  if (const ServiceStatus checked = CheckStepId(); !checked) return SetFailure(checked), true;
  if (solve_.IsLongMessage(shared_.config)) return !Enqueue();
  const Clock::time_point begin = Clock::now();
  ClientAccount* const account = solve_.call().account;
  ServiceStatus status = Decode();
  if (status && !(solve_.IsSmall(shared_.config) && shared_.queue->MayRunInline(*account))) {
    return !Enqueue();
  }
  if (status) status = Run(/*arena=*/nullptr);
  shared_.queue->ChargeInline(account, Clock::now() - begin);
  End(status);
  return true;
}

void Session::RefuseStep(const v1::SessionStep& step, const CallContext& call,
                         const ServiceError& error, v1::StepOutcome* outcome) {
  Begin(step, call, outcome);
  const ServiceStatus checked = CheckStepId();
  End(checked ? tl::unexpected(error) : checked);
}

// The time budget of a step that was sent ahead starts when the previous step ends.
void Session::Begin(const v1::SessionStep& step, const CallContext& call,
                    v1::StepOutcome* outcome) {
  step_ = &step;
  outcome_ = outcome;
  CallContext own_call = call;
  own_call.arrival = std::max(call.arrival, last_end_);
  if (call.account == nullptr) own_call.account = shared_.account;
  solve_.Begin(ProblemOf(step), step.has_options() ? step.options() : options_, own_call);
  outcome->set_step_id(step.step_id());
  outcome->set_warm_started(false);
}

ServiceStatus Session::CheckStepId() {
  const uint64_t step_id = step_->step_id();
  if (last_step_id_ && step_id <= *last_step_id_) {
    return RefuseField("step_id", "is " + std::to_string(step_id) + "; it must be larger than " +
                                      std::to_string(*last_step_id_) +
                                      ", the id of the previous step");
  }
  last_step_id_ = step_id;
  return {};
}

ServiceStatus Session::Decode() {
  ServiceStatus decoded =
      solve_.Decode(shared_.config).and_then([this] { return KeepVelocities(); });
  if (!decoded) return decoded;
  return CatchExceptions([&]() -> ServiceStatus {
    outcome_->set_warm_started(solve_.task().StartFrom(last_velocities_));
    return {};
  });
}

ServiceStatus Session::DecodeAndRun(TaskArena* arena) {
  if (const auto live = CheckLive(solve_.call()); !live) return tl::unexpected(live.error());
  if (!solve_.decoded()) {
    if (ServiceStatus decoded = Decode(); !decoded) return decoded;
  }
  return Run(solve_.IsSmall(shared_.config) ? nullptr : arena);
}

ServiceStatus Session::Run(TaskArena* arena) {
  // After an exception the solver's workspaces are in an undefined state, so the solver is put back
  // only if none occurred.
  std::unique_ptr<Solver> solver = std::move(solver_);
  return CatchExceptions([&]() -> ServiceStatus {
    if (solver == nullptr) solver = std::make_unique<Solver>(nullptr);
    solver->UseArena(arena);
    v1::ContactSolution* answer = outcome_->mutable_outcome()->mutable_solution();
    ServiceStatus status = solve_.Solve(solver.get(), answer);
    if (status) last_velocities_.Remember(solve_.task().trees(), solve_.solution());
    solver_ = std::move(solver);
    return status;
  });
}

// Before the solve: nothing may fail after it.
ServiceStatus Session::KeepVelocities() {
  const NamedTrees trees = solve_.task().trees();
  const int64_t bytes =
      NamedVelocities::BytesFor(std::ssize(trees.dofs), solve_.task().num_velocities());
  if (bytes <= velocity_bytes_) return {};
  return shared_.admission->KeepBytes(shared_.account, bytes - velocity_bytes_).map([&] {
    velocity_bytes_ = bytes;
  });
}

int64_t Session::StorageBytes() const {
  const int64_t answers = shared_.config.session.max_steps_in_flight * kMaxKeptAnswer_bytes;
  return answers + static_cast<int64_t>(sap::StorageBytes(solve_, solver_));
}

// An error: it is over a limit, or has to be freed in any case.
ServiceStatus Session::CountStorage() {
  if (shared_.admission->short_of_memory()) return tl::unexpected(ShortOfMemory());
  const int64_t bytes = StorageBytes();
  if (bytes == kept_bytes_) return {};
  return shared_.admission->KeepBytes(shared_.account, bytes - kept_bytes_).map([&] {
    kept_bytes_ = bytes;
  });
}

// After each step, whether it failed or not.
void Session::Keep() {
  if (CountStorage()) return;
  solve_.DropUnusedPlans();
  if (solver_ != nullptr) solver_->DropUnusedPlans();
  if (CountStorage()) return;
  shared_.heap_trimmer->Freed(StorageBytes());
  solver_.reset();
  solve_.FreeStorage();
  (void)shared_.admission->KeepBytes(shared_.account, -kept_bytes_);
  kept_bytes_ = 0;
}

// False if the step was rejected; then it is already answered.
bool Session::Enqueue() {
  const CallContext& call = solve_.call();
  demand_ = {.work_s = PredictedWork(step_->problem(), solve_.options())};
  if (const ServiceStatus admitted = shared_.admission->Admit(call.account, demand_); !admitted) {
    return End(admitted), false;
  }
  task_.run = [](void* session, Dispatch dispatch) {
    static_cast<Session*>(session)->RunQueued(dispatch);
  };
  task_.context = this;
  task_.account = call.account;
  task_.priority = PriorityOf(solve_.options());
  task_.work_s = demand_.work_s;
  if (const ServiceStatus pushed = shared_.queue->Push(&task_); !pushed) {
    shared_.admission->Release(call.account, demand_);
    return End(pushed), false;
  }
  return true;
}

void Session::RunQueued(Dispatch dispatch) {
  solve_.AddQueueTime(SecondsSince(task_.queued));
  if (dispatch == Dispatch::kExpired) {
    End(tl::unexpected(shared_.queue->Expired()));
  } else {
    End(DecodeAndRun(dispatch == Dispatch::kArena ? shared_.arena : nullptr));
  }
  shared_.admission->Release(solve_.call().account, demand_);
  // `done` may destroy the session.
  const Done done = done_;
  void* const context = context_;
  done(context);
}

void Session::End(const ServiceStatus& status) {
  if (!status) SetFailure(status);
  solve_.Report(status, shared_.telemetry);
  Keep();
  if (shared_.telemetry.metrics != nullptr) shared_.telemetry.metrics->session_steps.Add();
  last_end_ = Clock::now();
  if (low_latency_) shared_.idle_spinners->KeepSpinning();
}

void Session::SetFailure(const ServiceStatus& status) {
  outcome_->set_warm_started(false);
  EncodeFailure(status.error(), outcome_->mutable_outcome()->mutable_failure());
}

}  // namespace sap
