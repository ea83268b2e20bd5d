#include "client/cpp/split/divided_session.h"

#include <algorithm>
#include <utility>

#include "client/cpp/split/merge.h"

namespace sap::client {
namespace {

// Fields of a solution that the next step needs.
constexpr const char* kKept[] = {"velocity", "island_of_tree", "islands"};

bool Fits(const Solution& solution, const ProblemLayout& layout) {
  const auto islands = std::ssize(solution.islands);
  return std::ssize(solution.velocity) == layout.velocity_start.back() &&
         solution.island_of_tree.size() == layout.name.size() &&
         std::ranges::all_of(solution.island_of_tree,
                             [&](int i) { return i >= -1 && i < islands; });
}

}  // namespace

DividedSession::DividedSession(std::unique_ptr<StepStream> stream,
                               std::shared_ptr<SplitSolver> solver, Backend* backend,
                               const SolveOptions& options, Timeout deadline)
    : stream_(std::move(stream)),
      solver_(std::move(solver)),
      backend_(backend),
      options_(options),
      deadline_(deadline ? Clock::now() + std::chrono::duration_cast<Clock::duration>(*deadline)
                         : Clock::time_point::max()) {}

StepStream::State DividedSession::state() const {
  if (stream_ != nullptr) return stream_->state();
  return {.arrived = static_cast<int>(outcomes_.size()), .ended = ended_};
}

bool DividedSession::Await(const std::function<bool(const State&)>& is_ready,
                           const WaitLimit& limit) {
  return stream_ != nullptr ? stream_->Await(is_ready, limit) : is_ready(state());
}

void DividedSession::Send(uint64_t step_id, const ContactProblemView& problem,
                          const std::optional<SolveOptions>& options, const WaitLimit& limit) {
  if (!std::exchange(begun_, true) && solver_->Divides(problem)) stream_.reset();
  if (stream_ != nullptr) return stream_->Send(step_id, problem, options, limit);
  SolveOptions own = options.value_or(options_);
  own.call = {.cancelled = limit.cancelled};
  StepOutcome outcome{.step_id = step_id, .solution = tl::unexpected(Error())};
  outcome.solution = Step(problem, std::move(own), &outcome.warm_started);
  if (!outcome.solution && IsOtherBuild(outcome.solution.error())) {
    ended_ = outcome.solution.error();
  } else if (Clock::now() >= deadline_) {
    ended_ = Error{ErrorCode::kDeadlineExceeded, "the deadline of the session has passed", ""};
  } else {
    outcomes_.push_back(std::move(outcome));
  }
}

tl::expected<Solution, Error> DividedSession::Step(const ContactProblemView& problem,
                                                   SolveOptions options, bool* warm_started) {
  Timeout left = deadline_ - Clock::now();
  if (left > kLongestTime) left.reset();
  const std::vector<std::string> wanted = options.response_mask;
  for (const char* field : kKept) {
    if (!Wants(options.response_mask, field)) options.response_mask.emplace_back(field);
  }
  ContactProblemView from_last = problem;
  // A problem without a layout will be refused.
  const bool readable = layout_.Read(problem);
  const bool found = readable && FillGuess(&from_last);
  auto solution = client::Await<SolveOutcome>([&](Where where, Done<SolveOutcome> done) {
    solver_->Solve(backend_, from_last, options, 1, left, where, &pin_, std::move(done));
  });
  if (!solution || !readable) return solution;
  if (!Fits(*solution, layout_)) {
    return tl::unexpected(
        Error{ErrorCode::kInternal, "the answer to a step of the session does not fit it", ""});
  }
  *warm_started = found;
  last_velocities_.Remember({layout_.name, layout_.velocity_start, layout_.dofs}, *solution);
  if (!Wants(wanted, "velocity")) solution->velocity.clear();
  if (!Wants(wanted, "island_of_tree")) solution->island_of_tree.clear();
  if (!Wants(wanted, "islands")) solution->islands.clear();
  return solution;
}

// As a server does: for each named tree or body its last velocity, for the others v*; not where the
// problem contains a guess. Returns whether any velocity was found.
bool DividedSession::FillGuess(ContactProblemView* problem) {
  const auto append = [this](std::span<const double> given, std::span<const double> v_star) {
    const std::span<const double> from = given.empty() ? v_star : given;
    guess_.insert(guess_.end(), from.begin(), from.end());
  };
  guess_.clear();
  append(problem->trees.guess_velocity, problem->trees.free_motion_velocity);
  append(problem->bodies.guess_velocity, problem->bodies.free_motion_velocity);
  const NamedTrees trees{layout_.name, layout_.velocity_start, layout_.dofs};
  if (!last_velocities_.FillGuess(*problem, trees, guess_)) return false;
  const std::span<const double> guess(guess_);
  const size_t of_trees = problem->trees.free_motion_velocity.size();
  problem->trees.guess_velocity = guess.first(of_trees);
  problem->bodies.guess_velocity = guess.subspan(of_trees);
  return true;
}

StepOutcome DividedSession::Take() {
  if (stream_ != nullptr) return stream_->Take();
  StepOutcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

Status DividedSession::Withdraw(uint64_t step_id) {
  if (stream_ != nullptr) return stream_->Withdraw(step_id);
  return tl::unexpected(Error{ErrorCode::kFailedPrecondition,
                              "the step is solved, as a divided one is when it is sent", ""});
}

void DividedSession::Reset() {
  if (stream_ != nullptr) return stream_->Reset();
  last_velocities_.Clear();
  pin_.Forget();
}

}  // namespace sap::client
