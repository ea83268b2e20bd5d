#include "solver/engine/engine_session.h"

#include <utility>

namespace sap {

EngineStatus EngineSession::Step(const ContactProblemView& problem, const SolverOptions& options,
                                 const CallLimits& call, const SolveLimits& limits,
                                 ContactSolution* solution, Report* report) {
  return CatchExceptions([&]() -> EngineStatus {
    // Lost in an exception, which leaves it in an undefined state.
    std::unique_ptr<Workspace> workspace = std::move(workspace_);
    if (workspace == nullptr) workspace = std::make_unique<Workspace>();
    EngineStatus status = workspace->task.Read(problem);
    if (status) {
      report->warm_started = workspace->task.StartFrom(last_velocities_);
      report->check_s = SecondsSince(call.arrival);
      status = engine_->Solve(workspace.get(), options, call, limits, solution);
    }
    if (status) last_velocities_.Remember(workspace->task.trees(), *solution);
    workspace_ = std::move(workspace);
    return status;
  });
}

}  // namespace sap
