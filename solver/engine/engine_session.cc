#include "solver/engine/engine_session.h"

#include <utility>

namespace sap {

EngineStatus EngineSession::Step(const SolveRequest& request, const CallLimits& call,
                                 SolveAnswer* answer) {
  return CatchExceptions([&]() -> EngineStatus {
    // Lost in an exception, which leaves it in an undefined state.
    std::unique_ptr<Workspace> workspace = std::move(workspace_);
    if (workspace == nullptr) workspace = std::make_unique<Workspace>();
    EngineStatus status = CheckLive(call);
    if (status) {
      status = workspace->task.Read(request, kInProcessLimits, engine_->threads());
    }
    if (status) {
      answer->warm_started = workspace->task.StartFrom(last_velocities_);
      answer->check_s = SecondsSince(call.arrival);
      status = engine_->Solve(workspace.get(), request.settings.solver, call,
                              {.time_budget = request.settings.time_budget}, &answer->solution);
    }
    if (status) last_velocities_.Remember(workspace->task.trees(), answer->solution);
    workspace_ = std::move(workspace);
    return status;
  });
}

}  // namespace sap
