#include "client/c/solver.h"

#include <utility>
#include <vector>

#include "client/c/struct_reader.h"
#include "solver/island_forecast.h"

namespace sap::c {
namespace {

CallLimits LimitsOf(const sap_stop* stop) {
  return {.cancelled = stop != nullptr ? &stop->requested : nullptr};
}

// Puts the error, if any, into the answer.
void SetError(const EngineStatus& status, sap_answer* answer) {
  if (!status) answer->SetError(status.error());
}

// Solves a problem in a workspace of the engine.
EngineStatus SolveIn(Engine* engine, const sap_problem* problem, const GivenOptions& options,
                     const CallLimits& call, sap_answer* answer) {
  return engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus live = CheckLive(call); !live) return live;
    const auto given = ReadProblem(problem);
    if (!given) return RefuseField(given.error());
    if (EngineStatus read = workspace.task.Read(given->view); !read) return read;
    const double check_s = SecondsSince(call.arrival);
    EngineStatus solved = engine->Solve(&workspace, options.solver, call,
                                        {.time_budget = options.time_budget}, &answer->solution);
    if (solved) answer->SetSolution(check_s, /*warm_started=*/false);
    return solved;
  });
}

EngineStatus DifferentiateIn(Engine* engine, const sap_differentiation& request,
                             const GivenOptions& options, const CallLimits& call,
                             sap_answer* answer) {
  return engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus live = CheckLive(call); !live) return live;
    const auto given = ReadProblem(request.problem);
    if (!given) return RefuseField(given.error());
    SolveTask& task = workspace.task;
    if (EngineStatus read = task.Read(given->view); !read) return read;
    auto asked = ReadDifferentiation(request, *given);
    if (!asked) return RefuseField(asked.error());
    if (EngineStatus read = task.Read(std::move(asked->derivatives)); !read) return read;
    const double check_s = SecondsSince(call.arrival);
    EngineStatus solved =
        engine->Solve(&workspace, options.solver, call, {.time_budget = options.time_budget},
                      &answer->solution, &answer->derivatives);
    if (!solved) return solved;
    answer->SetSolution(check_s, /*warm_started=*/false);
    answer->SetDerivatives(given->view, task.problem(), asked->wanted);
    return {};
  });
}

// A measure of a problem that has not been checked, by which a batch is ordered.
int64_t SizeOf(const sap_problem* problem) {
  const auto given = ReadProblem(problem);
  return given ? sap::SizeOf(given->view) : 0;
}

// Runs a batch. What is at fault with all of it, or a stop, is the error of every answer; returns
// the kind of that.
template <typename Batch>
int32_t AnswerBatch(const CallLimits& call, std::span<sap_answer* const> answers,
                    const Batch& batch) {
  const EngineStatus status = CatchExceptions(batch).and_then([&] { return CheckLive(call); });
  if (status) return SAP_OK;
  for (sap_answer* answer : answers) answer->SetError(status.error());
  return static_cast<int32_t>(status.error().code);
}

}  // namespace

void Solve(Engine* engine, const sap_problem* problem, const sap_options* options,
           const sap_stop* stop, sap_answer* answer) {
  const CallLimits call = LimitsOf(stop);
  const auto solve = [&]() -> EngineStatus {
    const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return RefuseField(given.error());
    return SolveIn(engine, problem, *given, call, answer);
  };
  SetError(CatchExceptions(solve), answer);
}

int32_t SolveBatch(Engine* engine, std::span<const sap_problem* const> problems,
                   const sap_options* options, const sap_stop* stop,
                   std::span<sap_answer* const> answers) {
  const CallLimits call = LimitsOf(stop);
  return AnswerBatch(call, answers, [&]() -> EngineStatus {
    const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return RefuseField(given.error());
    std::vector<int64_t> sizes;
    for (const sap_problem* problem : problems) sizes.push_back(SizeOf(problem));
    engine->ForLargestFirst(sizes, [&](int i) {
      SetError(SolveIn(engine, problems[i], *given, call, answers[i]), answers[i]);
    });
    return {};
  });
}

void FindIslands(Engine* engine, const sap_problem* problem, sap_answer* answer) {
  const auto find = [&](Workspace& workspace) -> EngineStatus {
    const auto given = ReadProblem(problem);
    if (!given) return RefuseField(given.error());
    if (!workspace.layout.Read(given->view)) {
      if (EngineStatus read = workspace.task.Read(given->view); !read) return read;
      return tl::unexpected(EngineError{EngineErrorCode::kInvalidArgument,
                                        "an array that is not read has a length that fits "
                                        "nothing; leave it empty",
                                        ""});
    }
    ForecastIslands(workspace.layout, &answer->forecast);
    answer->SetForecast();
    return {};
  };
  SetError(engine->Run(find), answer);
}

void Differentiate(Engine* engine, const sap_differentiation* request, const sap_stop* stop,
                   sap_answer* answer) {
  const CallLimits call = LimitsOf(stop);
  const auto differentiate = [&]() -> EngineStatus {
    const auto taken = ReadRequest(request);
    if (!taken) return RefuseField(taken.error());
    const auto given = ReadOptions(taken->options, kDerivativeTolerance);
    if (!given) return RefuseField(given.error());
    return DifferentiateIn(engine, *taken, *given, call, answer);
  };
  SetError(CatchExceptions(differentiate), answer);
}

int32_t DifferentiateBatch(Engine* engine, std::span<const sap_differentiation* const> requests,
                           const double* time_budget_s, const sap_stop* stop,
                           std::span<sap_answer* const> answers) {
  const CallLimits call = LimitsOf(stop);
  return AnswerBatch(call, answers, [&]() -> EngineStatus {
    std::optional<std::chrono::nanoseconds> time_budget;
    if (time_budget_s != nullptr) {
      const auto budget = ReadTimeBudget(*time_budget_s, "time_budget");
      if (!budget) return RefuseField(budget.error());
      time_budget = *budget;
    }
    std::vector<int64_t> sizes;
    for (const sap_differentiation* request : requests) {
      const auto taken = ReadRequest(request);
      sizes.push_back(taken ? SizeOf(taken->problem) : 0);
    }
    const auto differentiate = [&](int i) -> EngineStatus {
      const auto taken = ReadRequest(requests[i]);
      if (!taken) return RefuseField(taken.error());
      auto given = ReadOptions(taken->options, kDerivativeTolerance);
      if (!given) return RefuseField(given.error());
      if (given->time_budget) return RefuseTimeBudgetInBatch();
      given->time_budget = time_budget;
      return DifferentiateIn(engine, *taken, *given, call, answers[i]);
    };
    engine->ForLargestFirst(sizes, [&](int i) {
      SetError(CatchExceptions([&] { return differentiate(i); }), answers[i]);
    });
    return {};
  });
}

}  // namespace sap::c

void sap_session::Step(const sap_problem* problem, const sap_options* options, const sap_stop* stop,
                       sap_answer* answer) {
  using namespace sap;
  // True also in the child of a fork() during a step, for ever.
  if (std::exchange(stepping_, true)) {
    return answer->SetError({EngineErrorCode::kFailedPrecondition,
                             "the session is in a step of another thread, here or in the parent "
                             "of this process",
                             ""});
  }
  const CallLimits call = c::LimitsOf(stop);
  const auto step = [&]() -> EngineStatus {
    const auto given = c::ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return RefuseField(given.error());
    if (EngineStatus live = CheckLive(call); !live) return live;
    const auto read = c::ReadProblem(problem);
    if (!read) return RefuseField(read.error());
    EngineSession::Report report;
    EngineStatus solved =
        session_.Step(read->view, given->solver, call, {.time_budget = given->time_budget},
                      &answer->solution, &report);
    if (solved) answer->SetSolution(report.check_s, report.warm_started);
    return solved;
  };
  c::SetError(CatchExceptions(step), answer);
  stepping_ = false;
}
