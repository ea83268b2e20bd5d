#include "server/session.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "server/solution_encoder.h"

namespace sap {
namespace {

using Clock = CallLimits::Clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const v1::ContactProblem* ProblemOf(const v1::SessionStep& step) {
  return step.has_problem() ? &step.problem() : nullptr;
}

bool HasVelocity(const ContactSolution& solution, int tree) {
  const int island = solution.island_of_tree[tree];
  return island < 0 || solution.islands[island].status != SolveStatus::kNumericalFailure;
}

}  // namespace

void NamedVelocities::Remember(const ContactProblem& problem, const ContactSolution& solution) {
  entries_.clear();
  velocities_.assign(solution.velocity.begin(), solution.velocity.end());
  for (int tree = 0; tree < problem.num_trees(); ++tree) {
    if (problem.tree_id()[tree] < 0 || !HasVelocity(solution, tree)) continue;
    entries_.push_back(
        {problem.tree_id()[tree], problem.velocity_start()[tree], problem.dofs()[tree]});
  }
  // Most clients name their bodies in ascending order.
  if (!std::ranges::is_sorted(entries_, {}, &Entry::name)) {
    std::ranges::sort(entries_, {}, &Entry::name);
  }
}

bool NamedVelocities::SetGuess(const v1::ContactProblem& message, ContactProblem* problem) {
  const int num_trees = message.trees().dofs_size();
  const bool trees_have_guess = message.trees().guess_velocity_size() > 0;
  const bool bodies_have_guess = message.bodies().guess_velocity_size() > 0;
  guess_.assign(problem->v_guess().begin(), problem->v_guess().end());
  bool any = false;
  for (int tree = 0; tree < problem->num_trees(); ++tree) {
    if (tree < num_trees ? trees_have_guess : bodies_have_guess) continue;
    const int64_t name = problem->tree_id()[tree];
    const auto entry = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
    if (entry == entries_.end() || entry->name != name) continue;
    if (entry->dofs != problem->dofs()[tree]) continue;
    std::copy_n(velocities_.begin() + entry->start, entry->dofs,
                guess_.begin() + problem->velocity_start()[tree]);
    any = true;
  }
  if (any) problem->SetGuess(guess_);
  return any;
}

Session::Session(const ServerConfig& config, TaskArena* arena, RequestRecorder* recorder,
                 std::atomic<int>* gauge)
    : config_(config), arena_(arena), recorder_(recorder), gauge_(gauge) {}

Session::~Session() { gauge_->fetch_sub(1, std::memory_order_relaxed); }

ServiceStatus Session::Open(const v1::OpenSession& request) {
  const auto settings = DecodeOptions(request.options(), config_.max_iterations);
  if (!settings) return tl::unexpected(settings.error());
  options_ = request.options();
  return {};
}

void Session::Step(const v1::SessionStep& step, const CallLimits& limits,
                   v1::StepOutcome* outcome) {
  Begin(step, limits, outcome);
  if (const ServiceStatus number = CheckNumber(); !number) return Refuse(number);
  End(DecodeAndRun());
}

bool Session::StartStep(const v1::SessionStep& step, const CallLimits& limits,
                        v1::StepOutcome* outcome, Done done, void* context) {
  Begin(step, limits, outcome);
  done_ = done;
  context_ = context;
  if (const ServiceStatus number = CheckNumber(); !number) return Refuse(number), true;
  if (solve_.IsLongMessage(config_)) return Enqueue(), false;
  ServiceStatus status = Decode();
  if (status && !solve_.IsSmall(config_)) return Enqueue(), false;
  if (status) status = Run(/*on_arena=*/false);
  End(status);
  return true;
}

// The time budget of a step that was sent ahead counts from the end of the one before it.
void Session::Begin(const v1::SessionStep& step, const CallLimits& limits,
                    v1::StepOutcome* outcome) {
  step_ = &step;
  outcome_ = outcome;
  CallLimits from_its_turn = limits;
  from_its_turn.arrival = std::max(limits.arrival, last_end_);
  solve_.Begin(ProblemOf(step), step.has_options() ? step.options() : options_, from_its_turn);
  outcome->set_step_id(step.step_id());
  outcome->set_warm_started(false);
}

ServiceStatus Session::CheckNumber() {
  const uint64_t step_id = step_->step_id();
  if (last_step_id_ && step_id <= *last_step_id_) {
    return RefuseField("step_id", "is " + std::to_string(step_id) + "; it must be larger than " +
                                      std::to_string(*last_step_id_) +
                                      ", the one of the step before");
  }
  last_step_id_ = step_id;
  return {};
}

ServiceStatus Session::Decode() {
  if (ServiceStatus decoded = solve_.Decode(config_); !decoded) return decoded;
  return Guard([&]() -> ServiceStatus {
    outcome_->set_warm_started(last_velocities_.SetGuess(step_->problem(), &solve_.problem()));
    return {};
  });
}

ServiceStatus Session::DecodeAndRun() {
  if (ServiceStatus wanted = CheckWanted(solve_.limits()); !wanted) return wanted;
  if (!solve_.decoded()) {
    if (ServiceStatus decoded = Decode(); !decoded) return decoded;
  }
  return Run(/*on_arena=*/!solve_.IsSmall(config_));
}

ServiceStatus Session::Run(bool on_arena) {
  // After an exception its workspaces are in no known state; it is given back only if there is
  // none.
  std::unique_ptr<Solver> solver = std::move(solver_);
  return Guard([&] {
    if (solver == nullptr) solver = std::make_unique<Solver>(nullptr);
    solver->UseArena(on_arena ? arena_ : nullptr);
    v1::ContactSolution* answer = outcome_->mutable_outcome()->mutable_solution();
    ServiceStatus status = solve_.Solve(solver.get(), answer);
    if (status) last_velocities_.Remember(solve_.problem(), solve_.solution());
    solver_ = std::move(solver);
    return status;
  });
}

void Session::Enqueue() {
  queued_ = Clock::now();
  arena_->Enqueue(
      [](void* context) {
        auto* session = static_cast<Session*>(context);
        session->solve_.AddQueueTime(SecondsSince(session->queued_));
        const Done done = session->done_;
        void* const done_context = session->context_;
        session->End(session->DecodeAndRun());
        done(done_context);
      },
      this);
}

void Session::End(const ServiceStatus& status) {
  if (!status) Refuse(status);
  solve_.Record(status, recorder_);
  last_end_ = Clock::now();
}

void Session::Refuse(const ServiceStatus& status) {
  outcome_->set_warm_started(false);
  EncodeFailure(status.error(), outcome_->mutable_outcome()->mutable_failure());
}

}  // namespace sap
