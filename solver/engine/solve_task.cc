#include "solver/engine/solve_task.h"

#include <utility>
#include <vector>

#include "solver/island_forecast.h"
#include "solver/problem/input_differential.h"

namespace sap {

EngineStatus SolveTask::Read(const ContactProblemView& view, const ProblemLimits& limits) {
  view_ = view;
  derivatives_.reset();
  if (const auto checked = problem_.Reset(view, limits); !checked) {
    return RefuseField(checked.error());
  }
  predicted_s_ = PredictedSolveTime(problem_);
  return {};
}

EngineStatus SolveTask::Read(DerivativesRequest request) {
  if (EngineStatus checked = CheckDerivatives(request, view_, problem_); !checked) return checked;
  if (!request.velocity.empty()) problem_.SetGuess(request.velocity);
  predicted_s_ *= RelativeWork(request.count());
  derivatives_ = std::move(request);
  return {};
}

EngineStatus SolveTask::Solve(Solver* solver, const SolverOptions& options, const CallLimits& call,
                              const SolveLimits& limits, ContactSolution* solution,
                              Derivatives* derivatives) const {
  if (derivatives_ && options.coulomb) {
    return RefuseField("options.coulomb",
                       "is given; there are derivatives of the convex model alone");
  }
  if (options.rest) {
    if (const char* field = problem_.MissingInitialVelocity(); field != nullptr) {
      return RefuseField(field,
                         "is empty; options.rest needs the velocities at the beginning of the "
                         "step of all that constraints touch");
    }
  }
  const StopToken stop = StopTokenFor(call, limits);
  const auto solve = [&]() -> tl::expected<void, MemoryLimitExceeded> {
    if (!derivatives_) return solver->Solve(problem_, options, stop, solution);
    std::vector<ProblemDifferential> changes(derivatives_->directions.size());
    for (size_t i = 0; i < changes.size(); ++i) {
      FromInputs(view_, problem_, derivatives_->directions[i], &changes[i]);
    }
    return solver->Differentiate(problem_, options, derivatives_->cotangents, changes,
                                 {.hold_delassus = derivatives_->hold_delassus}, stop, solution,
                                 derivatives);
  };
  const auto solved = solve();
  if (EngineStatus live = CheckLive(call); !live) return live;
  if (solved) return {};
  return tl::unexpected(EngineError{EngineErrorCode::kResourceExhausted, solved.error().Message(),
                                    "", "SOLVE_MEMORY"});
}

}  // namespace sap
