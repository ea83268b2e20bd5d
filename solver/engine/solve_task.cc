#include "solver/engine/solve_task.h"

#include <utility>
#include <vector>

#include "solver/engine/solve_memory.h"
#include "solver/problem/input_differential.h"
#include "solver/run/island_forecast.h"

namespace sap {
namespace {

tl::unexpected<EngineError> OutOfMemory(const MemoryLimitExceeded& error) {
  return tl::unexpected(
      EngineError{EngineErrorCode::kResourceExhausted, error.Message(), "", "SOLVE_MEMORY"});
}

}  // namespace

EngineStatus SolveTask::Read(const ContactProblemView& view, const ProblemLimits& limits,
                             SharedIslands* shared) {
  view_ = view;
  limits_ = limits;
  shared_ = shared != nullptr && shared->IsOpen() ? shared : nullptr;
  sharing_.Clear();
  derivatives_.reset();
  guess_.clear();
  in_shards_ = sharded_.Read(view, limits);
  is_read_ = false;
  if (!in_shards_) {
    if (shared_ != nullptr) return ReadRemainder();
    if (!sharded_.is_large_whole()) return ReadWhole(nullptr);
  }
  predicted_s_ = PredictedSolveTime(sharded_.layout(), sharded_.islands());
  return {};
}

// Without the islands of which the batch has an answer. They have been checked with it.
EngineStatus SolveTask::ReadRemainder() {
  if (!IsWithin(limits_, view_)) return ReadWhole(nullptr);
  const ContactProblemView remainder = sharing_.Remainder(view_, shared_);
  if (!sharing_.found_any()) return ReadWhole(nullptr);
  if (!problem_.Reset(remainder, limits_)) {
    sharing_.Clear();
    return ReadWhole(nullptr);  // for the first fault of the whole
  }
  is_read_ = true;
  predicted_s_ = PredictedSolveTime(problem_);
  return {};
}

// On the calling thread where `arena` is null.
EngineStatus SolveTask::ReadWhole(TaskArena* arena) {
  const bool are_found = in_shards_ || sharded_.is_large_whole();
  const Islands* const islands = are_found ? &sharded_.islands() : nullptr;
  in_shards_ = false;
  is_read_ = true;
  if (const auto checked = problem_.Reset(view_, limits_, arena, islands); !checked) {
    return RefuseField(checked.error());
  }
  if (!guess_.empty()) problem_.SetGuess(guess_);
  predicted_s_ = PredictedSolveTime(problem_);
  return {};
}

EngineStatus SolveTask::Read(SolveRequest request, const EngineLimits& limits, int threads) {
  const SolverOptions& options = request.settings.solver;
  const bool shares = options.islands && !request.derivatives;
  if (EngineStatus read = Read(request.problem, limits.problem, shares ? request.shared : nullptr);
      !read) {
    return read;
  }
  const bool goes_by_shards = in_shards_ && options.islands && !request.derivatives;
  solve_bytes_ =
      goes_by_shards ? BytesOfSolve(sharded_, options, threads) : BytesOfSolve(view_, options);
  if (EngineStatus checked = CheckSolveMemory(solve_bytes_, limits); !checked) return checked;
  if (!request.derivatives) return {};
  return ReadDerivatives(*std::move(request.derivatives), limits);
}

EngineStatus SolveTask::ReadDerivatives(DerivativesRequest request, const EngineLimits& limits) {
  const size_t gradients = request.cotangents.size(), tangents = request.directions.size();
  if (EngineStatus checked = CheckNumber(gradients, tangents, limits); !checked) return checked;
  auto wanted = InputSelection::Make(request.wanted, view_, request.given);
  if (!wanted) return RefuseField(wanted.error());
  wanted_ = *std::move(wanted);
  if (EngineStatus checked = CheckMemory(gradients, tangents, view_, limits); !checked) {
    return checked;
  }
  if (!is_read_) {
    if (EngineStatus read = ReadWhole(nullptr); !read) return read;
  }
  if (EngineStatus checked = CheckDerivatives(request, view_, problem_); !checked) return checked;
  if (!request.velocity.empty()) problem_.SetGuess(request.velocity);
  predicted_s_ *= RelativeWork(request.count());
  derivatives_ = std::move(request);
  return {};
}

NamedTrees SolveTask::trees() const {
  const ProblemLayout* const layout = LayoutOfWhole();
  if (layout != nullptr) return {layout->name, layout->velocity_start, layout->dofs};
  return {problem_.tree_id(), problem_.velocity_start(), problem_.dofs()};
}

// Null: problem_ is the whole.
const ProblemLayout* SolveTask::LayoutOfWhole() const {
  if (!is_read_) return &sharded_.layout();
  return sharing_.found_any() ? &sharing_.layout() : nullptr;
}

std::vector<double> SolveTask::guess() const {
  if (!guess_.empty()) return guess_;
  std::vector<double> guess;
  AssignGuessOfProblem(&guess);
  return guess;
}

void SolveTask::AssignGuessOfProblem(std::vector<double>* guess) const {
  if (LayoutOfWhole() == nullptr) {
    return guess->assign(problem_.v_guess().begin(), problem_.v_guess().end());
  }
  guess->clear();
  const auto append = [guess](std::span<const double> given, std::span<const double> v_star) {
    const std::span<const double> from = given.empty() ? v_star : given;
    guess->insert(guess->end(), from.begin(), from.end());
  };
  append(view_.trees.guess_velocity, view_.trees.free_motion_velocity);
  append(view_.bodies.guess_velocity, view_.bodies.free_motion_velocity);
  guess->resize(num_velocities());  // v* may be missing, for which the problem will be refused
}

bool SolveTask::StartFrom(const NamedVelocities& velocities) {
  AssignGuessOfProblem(&guess_);
  if (!velocities.FillGuess(view_, trees(), guess_)) {
    guess_.clear();
    return false;
  }
  if (is_read_) problem_.SetGuess(guess_);
  return true;
}

EngineStatus SolveTask::Solve(Solver* solver, const SolverOptions& options, const CallLimits& call,
                              const SolveLimits& limits, ContactSolution* solution,
                              Derivatives* derivatives) {
  if (derivatives_ && options.coulomb) {
    return RefuseField("options.coulomb",
                       "is given; there are derivatives of the convex model alone");
  }
  if (!is_read_ && !(in_shards_ && options.islands)) {
    if (EngineStatus read = ReadWhole(solver->arena()); !read) return read;
  }
  const StopToken stop = StopTokenFor(call, limits);
  EngineStatus solved = in_shards_ ? SolveShards(solver, options, stop, solution)
                                   : SolveWhole(solver, options, stop, solution, derivatives);
  if (EngineStatus live = CheckLive(call); !live) return live;
  if (shared_ != nullptr && solved) shared_->ProblemEnded(solution->shared_islands > 0);
  return solved;
}

// A rule on options and problem together.
EngineStatus SolveTask::CheckOptions(const SolverOptions& options) const {
  const char* const field = options.rest ? problem_.MissingInitialVelocity() : nullptr;
  if (field == nullptr) return {};
  return RefuseField(field,
                     "is empty; options.rest needs the velocities at the beginning of the step of "
                     "all that constraints touch");
}

EngineStatus SolveTask::SolveShards(Solver* solver, const SolverOptions& options,
                                    const StopToken& stop, ContactSolution* solution) {
  const auto solved = solver->Solve(sharded_, guess_, options, stop, solution, shared_);
  if (!solved) return OutOfMemory(solved.error());
  if (*solved) return {};
  // A shard does not know which fault is the first of the whole.
  if (EngineStatus read = ReadWhole(nullptr); !read) return read;
  if (EngineStatus checked = CheckOptions(options); !checked) return checked;
  return tl::unexpected(EngineError{EngineErrorCode::kInternal,
                                    "a part of the scene is refused, and the scene is not", ""});
}

EngineStatus SolveTask::SolveWhole(Solver* solver, const SolverOptions& options,
                                   const StopToken& stop, ContactSolution* solution,
                                   Derivatives* derivatives) {
  if (EngineStatus checked = CheckOptions(options); !checked) return checked;
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
  if (!solved) return OutOfMemory(solved.error());
  sharing_.Complete(options, solution);
  return {};
}

}  // namespace sap
