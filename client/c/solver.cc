#include "client/c/solver.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "solver/island_forecast.h"
#include "solver/parallel/forked_threads.h"

namespace sap::c {
namespace {

using Clock = StopToken::Clock;
using Status = tl::expected<void, Error>;

// Where relative_tolerance is absent.
constexpr double kDerivativeTolerance = 1e-10;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

tl::unexpected<Error> Fail(const ProblemError& error, const std::string& within = "") {
  return tl::unexpected(Refusal(error, within));
}

Status CheckLive(const CallLimits& limits) {
  if (!limits.cancelled()) return {};
  return tl::unexpected(Error{SAP_CANCELLED, "cancelled by the caller", ""});
}

// Only the standard library throws, when memory runs out.
template <typename Step>
Status Catch(const Step& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(Error{SAP_RESOURCE_EXHAUSTED, "not enough memory for this problem", ""});
  } catch (const std::exception& error) {
    return tl::unexpected(Error{SAP_INTERNAL, error.what(), ""});
  }
}

// Runs a call and puts its error, if any, into the answer.
template <typename Step>
void Answer(sap_answer* answer, const Step& step) {
  if (const Status status = Catch(step); !status) answer->SetError(status.error());
}

// One call: what it reads its problem into, solves it with, and where its answer goes.
struct Call {
  SharedState* shared;
  Workspace* workspace;
  const CallLimits& limits;
  sap_answer* answer;

  // Reads and checks the problem.
  Status Check(const GivenProblem& given) const {
    if (const auto checked = workspace->problem.Reset(given.view); !checked) {
      return Fail(checked.error());
    }
    return {};
  }

  // The threads that a solve gets: handing over a small problem takes longer than solving it. The
  // prediction is for some ten iterations.
  void ChooseThreads(const SolverOptions& options, double relative_work) const {
    constexpr double kSmall_s = 200e-6;
    const bool small = options.max_iterations <= SolverOptions().max_iterations &&
                       PredictedSolveTime(workspace->problem) * relative_work < kSmall_s;
    workspace->solver.UseArena(small ? nullptr : &shared->Current().arena());
  }

  Status End(const tl::expected<void, MemoryLimitExceeded>& solved) const {
    if (Status live = CheckLive(limits); !live) return live;
    if (solved) return {};
    return tl::unexpected(
        Error{SAP_RESOURCE_EXHAUSTED, solved.error().Message(), "", "SOLVE_MEMORY"});
  }
};

// `names` is that of a session, or null.
Status SolveIn(const Call& call, const sap_problem* problem, const SolverOptions& options,
               NamedVelocities* names) {
  if (Status live = CheckLive(call.limits); !live) return live;
  const auto given = ReadProblem(problem);
  if (!given) return Fail(given.error());
  if (Status checked = call.Check(*given); !checked) return checked;
  ContactProblem& checked = call.workspace->problem;
  const bool warm_started = names != nullptr && names->SetGuess(given->guesses(), &checked);
  const double check_s = SecondsSince(call.limits.arrival);
  call.ChooseThreads(options, 1);
  const auto solved =
      call.workspace->solver.Solve(checked, options, call.limits.Token(), &call.answer->solution);
  if (Status ended = call.End(solved); !ended) return ended;
  if (names != nullptr) names->Remember(checked, call.answer->solution);
  call.answer->SetSolution(check_s, warm_started);
  return {};
}

Status CheckDerivatives(const GivenDifferentiation& wanted, const GivenProblem& given,
                        ContactProblem* problem) {
  if (const auto checked = CheckVelocity(wanted.velocity, *problem); !checked) {
    return Fail(checked.error());
  }
  if (const auto checked = CheckHeldDelassus(wanted.hold_delassus, *problem); !checked) {
    return Fail(checked.error());
  }
  if (!wanted.velocity.empty()) problem->SetGuess(wanted.velocity);
  for (size_t i = 0; i < wanted.cotangents.size(); ++i) {
    if (const auto checked = CheckCotangent(wanted.cotangents[i], *problem); !checked) {
      return Fail(checked.error(), "cotangents[" + std::to_string(i) + "].");
    }
  }
  for (size_t i = 0; i < wanted.directions.size(); ++i) {
    if (const auto checked = CheckDirection(given.view, wanted.directions[i]); !checked) {
      return Fail(checked.error(), "tangents[" + std::to_string(i) + "].");
    }
  }
  return {};
}

Status DifferentiateIn(const Call& call, const sap_differentiation& request,
                       const SolverOptions& options) {
  if (Status live = CheckLive(call.limits); !live) return live;
  const auto given = ReadProblem(request.problem);
  if (!given) return Fail(given.error());
  if (Status checked = call.Check(*given); !checked) return checked;
  const auto wanted = ReadDifferentiation(request, *given);
  if (!wanted) return Fail(wanted.error());
  ContactProblem& problem = call.workspace->problem;
  if (Status checked = CheckDerivatives(*wanted, *given, &problem); !checked) return checked;
  const double check_s = SecondsSince(call.limits.arrival);
  std::vector<ProblemDifferential> changes(wanted->directions.size());
  for (size_t i = 0; i < changes.size(); ++i) {
    FromInputs(given->view, problem, wanted->directions[i], &changes[i]);
  }
  // The polishing step with its factorization; the solve and the chain of each derivative.
  const auto derivatives = static_cast<double>(wanted->cotangents.size() + changes.size());
  call.ChooseThreads(options, 1.4 + 0.1 * derivatives);
  const auto solved = call.workspace->solver.Differentiate(
      problem, options, wanted->cotangents, changes, {.hold_delassus = wanted->hold_delassus},
      call.limits.Token(), &call.answer->solution, &call.answer->derivatives);
  if (Status ended = call.End(solved); !ended) return ended;
  call.answer->SetSolution(check_s, /*warm_started=*/false);
  call.answer->SetDerivatives(given->view, problem, wanted->wanted);
  return {};
}

// Calls with a workspace that is put back unless there was an exception, after which its state is
// undefined.
template <typename Body>
void WithWorkspace(SharedState* shared, const CallLimits& limits, sap_answer* answer,
                   const Body& body) {
  Answer(answer, [&] {
    ProcessState& state = shared->Current();
    std::unique_ptr<Workspace> workspace = state.Take();
    Status status = body(Call{shared, workspace.get(), limits, answer});
    state.Give(std::move(workspace));
    return status;
  });
}

// What a batch does with each of its problems, the largest first: a long one that began late would
// leave the other threads idle.
template <typename Size, typename Body>
void ForLargestFirst(SharedState* shared, size_t count, const Size& size, const Body& body) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), size);
  shared->Current().arena().ParallelFor(static_cast<int>(count), [&](int i) { body(order[i]); });
}

// Size of a problem that has not been checked.
int64_t SizeOf(const sap_problem* problem) {
  if (problem == nullptr || problem->struct_size < sizeof(sap_problem)) return 0;
  int64_t size = 0;
  if (problem->contacts != nullptr) size += problem->contacts->tree_a.length;
  if (problem->body_contacts != nullptr) size += problem->body_contacts->body_a.length;
  if (problem->rows != nullptr) size += problem->rows->entries.length;
  return size;
}

Read<GivenOptions> ReadOptionsInBatch(const sap_options* options) {
  auto given = ReadOptions(options, kDerivativeTolerance);
  if (given && given->time_budget) {
    return tl::unexpected(ProblemError{"options.time_budget", -1,
                                       "is given; in a batch there is one for all problems"});
  }
  return given;
}

// Runs a batch. What is at fault with all of it, or a stop, is the error of every answer; returns
// the kind of that.
template <typename Batch>
int32_t AnswerBatch(const CallLimits& limits, std::span<sap_answer* const> answers,
                    const Batch& batch) {
  const Status status = Catch(batch).and_then([&] { return CheckLive(limits); });
  if (status) return SAP_OK;
  for (sap_answer* answer : answers) answer->SetError(status.error());
  return status.error().kind;
}

}  // namespace

ProcessState::ProcessState(int threads) : generation_(ForkGeneration()), arena_(threads) {}

std::unique_ptr<Workspace> ProcessState::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Workspace> workspace = std::move(idle_.back());
      idle_.pop_back();
      return workspace;
    }
  }
  return std::make_unique<Workspace>();
}

void ProcessState::Give(std::unique_ptr<Workspace> workspace) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < static_cast<size_t>(arena_.num_threads())) {
    idle_.push_back(std::move(workspace));
  }
}

SharedState::SharedState(int threads)
    : threads_(threads), state_(std::make_unique<ProcessState>(threads).release()) {}

// That of a parent would wait for threads that this process does not have.
SharedState::~SharedState() {
  ProcessState* const state = state_.load();
  if (state->generation() == ForkGeneration()) delete state;
}

ProcessState& SharedState::Current() {
  ProcessState* state = state_.load();
  if (state->generation() == ForkGeneration()) return *state;
  // The state of the parent is left as it is: its locks may be held for ever.
  auto own = std::make_unique<ProcessState>(threads_);
  if (state_.compare_exchange_strong(state, own.get())) return *own.release();
  return *state;
}

StopToken CallLimits::Token() const {
  const auto deadline = time_budget ? arrival + *time_budget : StopToken::Clock::time_point::max();
  return StopToken(stop != nullptr ? &stop->requested : nullptr, deadline);
}

void Solve(SharedState* shared, const sap_problem* problem, const sap_options* options,
           const sap_stop* stop, sap_answer* answer) {
  CallLimits limits{.stop = stop};
  WithWorkspace(shared, limits, answer, [&](const Call& call) -> Status {
    const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return Fail(given.error());
    limits.time_budget = given->time_budget;
    return SolveIn(call, problem, given->solver, nullptr);
  });
}

int32_t SolveBatch(SharedState* shared, std::span<const sap_problem* const> problems,
                   const sap_options* options, const sap_stop* stop,
                   std::span<sap_answer* const> answers) {
  CallLimits limits{.stop = stop};
  return AnswerBatch(limits, answers, [&]() -> Status {
    const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return Fail(given.error());
    limits.time_budget = given->time_budget;
    const auto size = [&](size_t i) { return SizeOf(problems[i]); };
    ForLargestFirst(shared, problems.size(), size, [&](size_t i) {
      WithWorkspace(shared, limits, answers[i], [&](const Call& call) {
        return SolveIn(call, problems[i], given->solver, nullptr);
      });
    });
    return {};
  });
}

void FindIslands(SharedState* shared, const sap_problem* problem, sap_answer* answer) {
  const CallLimits limits;
  WithWorkspace(shared, limits, answer, [&](const Call& call) -> Status {
    const auto given = ReadProblem(problem);
    if (!given) return Fail(given.error());
    ProblemLayout& layout = call.workspace->layout;
    if (!layout.Read(given->view)) {
      if (Status checked = call.Check(*given); !checked) return checked;
      return tl::unexpected(Error{SAP_INVALID_ARGUMENT,
                                  "an array that is not read has a length "
                                  "that fits nothing; leave it empty",
                                  ""});
    }
    ForecastIslands(layout, &answer->forecast);
    answer->SetForecast();
    return {};
  });
}

void Differentiate(SharedState* shared, const sap_differentiation* request, const sap_stop* stop,
                   sap_answer* answer) {
  CallLimits limits{.stop = stop};
  WithWorkspace(shared, limits, answer, [&](const Call& call) -> Status {
    const auto taken = ReadRequest(request);
    if (!taken) return Fail(taken.error());
    const auto given = ReadOptions(taken->options, kDerivativeTolerance);
    if (!given) return Fail(given.error());
    limits.time_budget = given->time_budget;
    return DifferentiateIn(call, *taken, given->solver);
  });
}

int32_t DifferentiateBatch(SharedState* shared,
                           std::span<const sap_differentiation* const> requests,
                           const double* time_budget_s, const sap_stop* stop,
                           std::span<sap_answer* const> answers) {
  CallLimits limits{.stop = stop};
  return AnswerBatch(limits, answers, [&]() -> Status {
    if (time_budget_s != nullptr) {
      const auto budget = ReadTimeBudget(*time_budget_s, "time_budget");
      if (!budget) return Fail(budget.error());
      limits.time_budget = *budget;
    }
    const auto size = [&](size_t i) {
      const auto taken = ReadRequest(requests[i]);
      return taken ? SizeOf(taken->problem) : 0;
    };
    ForLargestFirst(shared, requests.size(), size, [&](size_t i) {
      WithWorkspace(shared, limits, answers[i], [&](const Call& call) -> Status {
        const auto taken = ReadRequest(requests[i]);
        if (!taken) return Fail(taken.error());
        const auto given = ReadOptionsInBatch(taken->options);
        if (!given) return Fail(given.error());
        return DifferentiateIn(call, *taken, given->solver);
      });
    });
    return {};
  });
}

}  // namespace sap::c

sap_session::sap_session(std::shared_ptr<sap::c::SharedState> of_solver)
    : shared_(std::move(of_solver)), workspace_(std::make_unique<sap::c::Workspace>()) {}

void sap_session::Step(const sap_problem* problem, const sap_options* options, const sap_stop* stop,
                       sap_answer* answer) {
  using namespace sap::c;
  // True also in the child of a fork() during a step, for ever.
  if (std::exchange(stepping_, true)) {
    return answer->SetError({SAP_FAILED_PRECONDITION,
                             "the session is in a step of another thread, here or in the parent "
                             "of this process",
                             ""});
  }
  CallLimits limits{.stop = stop};
  Answer(answer, [&]() -> Status {
    if (workspace_ == nullptr) workspace_ = std::make_unique<Workspace>();
    const auto given = ReadOptions(options, sap::SolverOptions().relative_tolerance);
    if (!given) return Fail(given.error());
    limits.time_budget = given->time_budget;
    // Lost in an exception, which leaves it in an undefined state.
    std::unique_ptr<Workspace> workspace = std::move(workspace_);
    Status status = SolveIn({shared_.get(), workspace.get(), limits, answer}, problem,
                            given->solver, &last_velocities_);
    workspace_ = std::move(workspace);
    return status;
  });
  stepping_ = false;
}
