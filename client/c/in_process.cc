#include "client/c/in_process.h"

#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "client/c/struct_reader.h"
#include "solver/build_info.h"
#include "solver/engine/boot_id.h"
#include "solver/engine/engine_limits.h"
#include "solver/island_forecast.h"

namespace sap::c {
namespace {

// Solves a problem in a workspace of the engine.
EngineStatus SolveIn(Engine* engine, const sap_problem* problem, const GivenOptions& options,
                     const CallLimits& call, AnswerContent* answer) {
  const auto given = ReadProblem(problem);
  if (!given) return RefuseField(given.error());
  return engine->Answer({given->view, {options.solver, options.time_budget}}, call,
                        [&](const SolveTask&, SolveAnswer& solved) {
                          answer->solution = std::move(solved.solution);
                          answer->SetSolution({.decode_s = solved.check_s},
                                              /*warm_started=*/false, options.mask);
                        });
}

EngineStatus DifferentiateIn(Engine* engine, const sap_differentiation& request,
                             const GivenOptions& options, const CallLimits& call,
                             AnswerContent* answer) {
  const auto given = ReadProblem(request.problem);
  if (!given) return RefuseField(given.error());
  auto asked = ReadDifferentiation(request, *given);
  if (!asked) return RefuseField(asked.error());
  return engine->Answer(
      {given->view, {options.solver, options.time_budget}, std::move(asked->derivatives)}, call,
      [&](const SolveTask& task, SolveAnswer& solved) {
        answer->solution = std::move(solved.solution);
        answer->derivatives = std::move(solved.derivatives);
        answer->SetSolution({.decode_s = solved.check_s}, /*warm_started=*/false, options.mask);
        answer->SetDerivatives(given->view, task.problem(), task.wanted());
      });
}

// A measure of a problem that has not been checked, by which a batch is ordered.
int64_t SizeOf(const sap_problem* problem) {
  const auto given = ReadProblem(problem);
  return given ? sap::SizeOf(given->view) : 0;
}

// Puts the error, if any, into the answer.
void SetError(EngineStatus status, sap_answer* answer) {
  if (!status) answer->content->SetError(Fail(std::move(status.error())).value());
}

class InProcess final : public Backend {
 public:
  explicit InProcess(int threads) : engine_(std::make_shared<Engine>(threads)) {}

  Status Info(const CallSettings& call, AnswerContent* answer) override;
  Status Health(const CallSettings&) override { return {}; }
  Status Solve(const sap_problem* problem, const sap_options* options, const CallSettings& call,
               AnswerContent* answer) override;
  Status SolveBatch(std::span<const sap_problem* const> problems, const sap_options* options,
                    const CallSettings& call, std::span<sap_answer* const> answers,
                    const Ended& ended) override;
  Status FindIslands(const sap_problem* problem, AnswerContent* answer) override;
  Status Differentiate(const sap_differentiation* request, const CallSettings& call,
                       AnswerContent* answer) override;
  Status DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                            const double* time_budget_s, const CallSettings& call,
                            std::span<sap_answer* const> answers) override;
  tl::expected<std::unique_ptr<SessionBackend>, CallError> OpenSession(
      const sap_options* options, const CallSettings& call) override;

 private:
  EngineStatus DifferentiateOne(const sap_differentiation& request,
                                const std::optional<std::chrono::nanoseconds>& time_budget,
                                const CallSettings& call, AnswerContent* answer);

  const std::shared_ptr<Engine> engine_;
};

Status InProcess::Info(const CallSettings&, AnswerContent* answer) {
  // Numbers of one problem or batch are bounded, the number of concurrent solves is not.
  constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
  constexpr EngineLimits kLimits;
  sap_server_info info{};
  info.processors = std::thread::hardware_concurrency();
  info.solver_threads = static_cast<uint32_t>(engine_->threads());
  info.max_message_bytes = std::numeric_limits<uint64_t>::max();
  info.max_solve_memory_bytes = std::numeric_limits<uint64_t>::max();
  info.max_trees = static_cast<uint32_t>(kLimits.problem.max_trees);
  info.max_tree_dofs = static_cast<uint32_t>(kLimits.problem.max_tree_dofs);
  info.max_contacts = static_cast<uint32_t>(kLimits.problem.max_contacts);
  info.max_rows = static_cast<uint32_t>(kLimits.problem.max_rows);
  info.max_row_entries = static_cast<uint32_t>(kLimits.problem.max_row_entries);
  info.max_row_pairs = static_cast<uint32_t>(kLimits.problem.max_row_pairs);
  info.max_iterations = std::numeric_limits<int>::max();
  info.max_concurrent_calls = kNoLimit;
  info.max_batch_problems = std::numeric_limits<int>::max();
  info.max_sessions = kNoLimit;
  info.max_client_sessions = kNoLimit;
  info.max_steps_in_flight = kNoLimit;
  info.max_derivatives = kNoLimit;
  info.high_priority = 1;
  info.max_client_calls = kNoLimit;
  info.max_held_bytes = info.max_client_bytes = std::numeric_limits<uint64_t>::max();
  for (double* time : {&info.max_solve_s, &info.queue_timeout_s, &info.read_timeout_s,
                       &info.session_idle_s, &info.connection_age_s}) {
    *time = std::numeric_limits<double>::infinity();
  }
  answer->SetInfo({SAP_VERSION, InstructionSet(), BootId()}, info);
  return {};
}

Status InProcess::Solve(const sap_problem* problem, const sap_options* options,
                        const CallSettings& call, AnswerContent* answer) {
  const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
  if (!given) return Fail(given.error());
  return StatusOf(SolveIn(engine_.get(), problem, *given, call.limits, answer));
}

Status InProcess::SolveBatch(std::span<const sap_problem* const> problems,
                             const sap_options* options, const CallSettings& call,
                             std::span<sap_answer* const> answers, const Ended& ended) {
  const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
  if (!given) return Fail(given.error());
  std::vector<int64_t> sizes;
  for (const sap_problem* problem : problems) sizes.push_back(SizeOf(problem));
  engine_->ForLargestFirst(sizes, [&](int i) {
    SetError(SolveIn(engine_.get(), problems[i], *given, call.limits, answers[i]->content.get()),
             answers[i]);
    if (ended) ended(i);
  });
  return StatusOf(CheckLive(call.limits));
}

Status InProcess::FindIslands(const sap_problem* problem, AnswerContent* answer) {
  return StatusOf(engine_->Run([&](Workspace& workspace) -> EngineStatus {
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
  }));
}

EngineStatus InProcess::DifferentiateOne(const sap_differentiation& request,
                                         const std::optional<std::chrono::nanoseconds>& time_budget,
                                         const CallSettings& call, AnswerContent* answer) {
  auto given = ReadOptions(request.options, kDerivativeTolerance);
  if (!given) return RefuseField(given.error());
  if (time_budget) given->time_budget = time_budget;
  return DifferentiateIn(engine_.get(), request, *given, call.limits, answer);
}

Status InProcess::Differentiate(const sap_differentiation* request, const CallSettings& call,
                                AnswerContent* answer) {
  const auto taken = ReadRequest(request);
  if (!taken) return Fail(taken.error());
  return StatusOf(DifferentiateOne(*taken, std::nullopt, call, answer));
}

Status InProcess::DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                                     const double* time_budget_s, const CallSettings& call,
                                     std::span<sap_answer* const> answers) {
  std::optional<std::chrono::nanoseconds> time_budget;
  if (time_budget_s != nullptr) {
    const auto budget = ReadTimeBudget(*time_budget_s, "time_budget");
    if (!budget) return Fail(budget.error());
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
    const auto given = ReadOptions(taken->options, kDerivativeTolerance);
    if (given && given->time_budget) return RefuseTimeBudgetInBatch();
    return DifferentiateOne(*taken, time_budget, call, answers[i]->content.get());
  };
  engine_->ForLargestFirst(sizes, [&](int i) {
    SetError(CatchExceptions([&] { return differentiate(i); }), answers[i]);
  });
  return StatusOf(CheckLive(call.limits));
}

tl::expected<std::unique_ptr<SessionBackend>, CallError> InProcess::OpenSession(
    const sap_options* options, const CallSettings& call) {
  const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
  if (!given) return Fail(given.error());
  return std::make_unique<InProcessSession>(engine_, *given, call.limits.deadline);
}

}  // namespace

BackendOrError ConnectInProcess(int threads) {
  return std::make_shared<InProcess>(threads > 0 ? threads : DefaultThreads());
}

}  // namespace sap::c
