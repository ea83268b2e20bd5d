#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "client/cpp/transport/backend.h"
#include "client/cpp/transport/message_conversion.h"
#include "proto/codec/engine_messages.h"
#include "proto/codec/problem_decoder.h"
#include "solver/build_info.h"
#include "solver/engine/boot_id.h"
#include "solver/engine/engine.h"
#include "solver/engine/engine_limits.h"
#include "solver/engine/engine_session.h"
#include "solver/parallel/idle_spinners.h"
#include "solver/problem/input_arrays.h"
#include "solver/problem/input_checker.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/input_selection.h"

namespace sap::client {
namespace {

using Clock = CallLimits::Clock;
using Fields = v1::ContactSolution;

constexpr EngineLimits kLimits;
// As many as a server takes.
constexpr int kMaxStepsInFlight = 8;

// Sessions share them, and may outlive the client.
struct Shared {
  explicit Shared(int threads)
      : engine(std::make_shared<Engine>(threads)),
        spinners(std::min(DefaultIdleSpinners(), threads)) {}

  const std::shared_ptr<Engine> engine;
  IdleSpinners spinners;
};

Error FromEngine(const EngineError& error) {
  return {FromCode(static_cast<int>(error.code)), error.message, error.field, error.reason};
}

Backend::Status FromEngine(const EngineStatus& status) {
  if (status) return {};
  return tl::unexpected(FromEngine(status.error()));
}

CallLimits Until(Backend::Timeout deadline) {
  CallLimits call;
  if (deadline) call.deadline = call.arrival + *deadline;
  return call;
}

tl::expected<std::optional<std::chrono::nanoseconds>, EngineError> CheckTimeBudget(
    const std::optional<std::chrono::nanoseconds>& budget, const char* field) {
  if (budget && budget->count() <= 0) {
    const double seconds = std::chrono::duration<double>(*budget).count();
    return RefuseField(field, "is " + ToText(seconds) + " s; it must be positive");
  }
  return budget > kLongestTime ? std::optional<std::chrono::nanoseconds>(kLongestTime) : budget;
}

// The options as messages would carry them, with the limits of this process.
tl::expected<SolveSettings, EngineError> CheckOptions(const SolveOptions& options) {
  SolveSettings settings;
  settings.solver = options.solver;
  if (const auto checked = CheckTolerances(options.solver); !checked) {
    return RefuseField(checked.error());
  }
  if (const auto checked = CheckIterations(static_cast<uint32_t>(options.solver.max_iterations),
                                           kLimits.max_iterations);
      !checked) {
    return RefuseField(checked.error());
  }
  settings.solver.max_factor_bytes = static_cast<size_t>(kLimits.max_solve_memory_mib) << 20;
  const auto budget = CheckTimeBudget(options.time_budget, "options.time_budget");
  if (!budget) return tl::unexpected(budget.error());
  settings.time_budget = *budget;
  const auto mask = DecodeMask({options.response_mask.begin(), options.response_mask.end()});
  if (!mask) return tl::unexpected(mask.error());
  settings.response_mask = *mask;
  return settings;
}

// The fields that the mask selects.
Solution SolutionOf(ContactSolution&& solved, const ResponseMask& mask, double check_s) {
  Solution solution;
  const auto take = [&](int field, auto& from, auto* to) {
    if (mask[field]) *to = std::move(from);
  };
  take(Fields::kVelocityFieldNumber, solved.velocity, &solution.velocity);
  take(Fields::kImpulseFieldNumber, solved.impulse, &solution.impulse);
  take(Fields::kContactVelocityFieldNumber, solved.contact_velocity, &solution.contact_velocity);
  take(Fields::kRowImpulseFieldNumber, solved.row_impulse, &solution.row_impulse);
  take(Fields::kRowVelocityFieldNumber, solved.row_velocity, &solution.row_velocity);
  take(Fields::kAngularImpulseFieldNumber, solved.angular_impulse, &solution.angular_impulse);
  take(Fields::kDelassusEstimateFieldNumber, solved.delassus_estimate, &solution.delassus_estimate);
  take(Fields::kCostFieldNumber, solved.cost, &solution.cost);
  take(Fields::kIslandOfTreeFieldNumber, solved.island_of_tree, &solution.island_of_tree);
  take(Fields::kIslandsFieldNumber, solved.islands, &solution.islands);
  if (mask[Fields::kTimingsFieldNumber]) {
    solution.timings = {
        .decode_s = check_s, .islands_s = solved.times.islands_s, .solve_s = solved.times.solve_s};
  }
  return solution;
}

// Solves a problem that was given as an object of the client.
Backend::SolveOutcome SolveIn(Engine* engine, const Problem& problem, const SolveSettings& settings,
                              const CallLimits& call) {
  ContactSolution solved;
  double check_s = 0;
  const EngineStatus status = engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus live = CheckLive(call); !live) return live;
    if (EngineStatus read = workspace.task.Read(ViewOf(problem)); !read) return read;
    check_s = SecondsSince(call.arrival);
    return engine->Solve(&workspace, settings.solver, call, {.time_budget = settings.time_budget},
                         &solved);
  });
  if (!status) return tl::unexpected(FromEngine(status.error()));
  return SolutionOf(std::move(solved), settings.response_mask, check_s);
}

// The wanted inputs of one gradient; the others become 0 or empty.
ProblemDerivative DerivativeOf(InputDifferential inputs, const InputSelection& wanted) {
  ProblemDerivative derivative;
  size_t input = 0;
  const auto take = [&](const auto&, auto& from, auto& to) {
    if (wanted.wanted(input++)) to = std::move(from);
  };
  ForEachNumberInput(take, inputs, static_cast<Problem&>(derivative));
  ForEachInput(take, inputs, static_cast<Problem&>(derivative));
  return derivative;
}

Derivatives DerivativesOf(const SolveTask& task, const InputSelection& wanted,
                          sap::Derivatives* computed, Solution solution) {
  Derivatives derivatives;
  derivatives.solution = std::move(solution);
  for (size_t k = 0; k < computed->gradients.size(); ++k) {
    InputDifferential inputs;
    GradientToInputs(task.view(), task.problem(), k, computed, &inputs);
    sap::Gradient from = std::move(computed->gradients[k]);  // freed once it is converted
    Gradient& gradient = derivatives.gradients.emplace_back();
    gradient.problem = DerivativeOf(std::move(inputs), wanted);
    if (wanted.applied_impulse()) gradient.applied_impulse = std::move(from.applied_impulse);
    if (wanted.delassus_estimate()) gradient.delassus_estimate = std::move(from.problem.w);
  }
  derivatives.tangents = std::move(computed->tangents);
  derivatives.kink_margin = std::move(computed->kink_margin);
  derivatives.adjoint_status = std::move(computed->adjoint_status);
  return derivatives;
}

DerivativesRequest RequestOf(std::span<const Cotangent> cotangents,
                             const DifferentiateOptions& options) {
  DerivativesRequest request{.velocity = options.velocity, .hold_delassus = options.hold_delassus};
  for (const Cotangent& cotangent : cotangents) {
    sap::Cotangent& view = request.cotangents.emplace_back();
    view.cost = cotangent.cost;
    sap::Cotangent::ForEach(
        [](const auto&, int, OutputPer, auto& to, const auto& from) { to = from; }, view,
        cotangent);
  }
  for (const Problem& tangent : options.tangents) request.directions.push_back(ViewOf(tangent));
  return request;
}

tl::expected<InputSelection, EngineError> SelectInputs(const std::vector<std::string>& wanted,
                                                       const ContactProblemView& view) {
  const std::vector<std::string_view> paths(wanted.begin(), wanted.end());
  // An object of the client has every number.
  const GivenRegularization given{
      .beta = true, .sigma = true, .row_beta = true, .stiction_speed = true};
  auto selection = InputSelection::Make(paths, view, given);
  if (!selection) return RefuseField(selection.error());
  return *std::move(selection);
}

Backend::DerivativesOutcome DifferentiateIn(Engine* engine, const Problem& problem,
                                            std::span<const Cotangent> cotangents,
                                            const DifferentiateOptions& options,
                                            const SolveSettings& settings, const CallLimits& call) {
  Derivatives derivatives;
  const EngineStatus status = engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus live = CheckLive(call); !live) return live;
    SolveTask& task = workspace.task;
    if (EngineStatus read = task.Read(ViewOf(problem)); !read) return read;
    DerivativesRequest request = RequestOf(cotangents, options);
    const size_t gradients = request.cotangents.size(), tangents = request.directions.size();
    if (EngineStatus checked = CheckNumber(gradients, tangents, kLimits); !checked) return checked;
    EngineStatus checked = CheckMemory(gradients, tangents, task.view(), kLimits);
    if (!checked) return checked;
    const auto wanted = SelectInputs(options.wanted, task.view());
    if (!wanted) return tl::unexpected(wanted.error());
    if (EngineStatus read = task.Read(std::move(request)); !read) return read;
    const double check_s = SecondsSince(call.arrival);
    ContactSolution solved;
    sap::Derivatives computed;
    EngineStatus ended = engine->Solve(&workspace, settings.solver, call,
                                       {.time_budget = settings.time_budget}, &solved, &computed);
    if (!ended) return ended;
    derivatives = DerivativesOf(task, *wanted, &computed,
                                SolutionOf(std::move(solved), settings.response_mask, check_s));
    return {};
  });
  if (!status) return tl::unexpected(FromEngine(status.error()));
  return derivatives;
}

// Send solves the step; Receive hands out its outcome.
class EmbeddedSteps final : public StepStream {
 public:
  EmbeddedSteps(std::shared_ptr<Shared> shared, SolveSettings settings, Clock::time_point deadline,
                bool low_latency)
      : shared_(std::move(shared)),
        session_(shared_->engine),
        settings_(settings),
        deadline_(deadline),
        low_latency_(low_latency && shared_->spinners.Start()) {
    if (low_latency_) shared_->spinners.KeepSpinning();
  }

  int max_steps_in_flight() const override { return kMaxStepsInFlight; }
  bool draining() const override { return false; }

  bool Send(uint64_t step_id, const Problem& problem,
            const std::optional<SolveOptions>& options) override {
    CallLimits call;
    call.deadline = deadline_;
    StepOutcome outcome{.step_id = step_id, .solution = tl::unexpected(Error())};
    const EngineStatus status =
        CatchExceptions([&] { return Step(problem, options, call, &outcome); });
    if (!status) outcome.solution = tl::unexpected(FromEngine(status.error()));
    if (low_latency_) shared_->spinners.KeepSpinning();
    // As over gRPC, the deadline is that of the session, not of the step.
    if (!CheckLive(call)) return false;
    outcomes_.push_back(std::move(outcome));
    return true;
  }

  tl::expected<StepOutcome, Error> Receive() override {
    if (outcomes_.empty()) {
      CallLimits call;
      call.deadline = deadline_;
      return tl::unexpected(FromEngine(CheckLive(call).error()));
    }
    StepOutcome outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    return outcome;
  }

  Backend::Status Close() override { return {}; }

 private:
  EngineStatus Step(const Problem& problem, const std::optional<SolveOptions>& options,
                    const CallLimits& call, StepOutcome* outcome) {
    auto settings = options ? CheckOptions(*options) : settings_;
    if (!settings) return tl::unexpected(settings.error());
    if (EngineStatus live = CheckLive(call); !live) return live;
    EngineSession::Report report;
    ContactSolution solved;
    EngineStatus status = session_.Step(ViewOf(problem), settings->solver, call,
                                        {.time_budget = settings->time_budget}, &solved, &report);
    if (!status) return status;
    outcome->warm_started = report.warm_started;
    outcome->solution = SolutionOf(std::move(solved), settings->response_mask, report.check_s);
    return {};
  }

  const std::shared_ptr<Shared> shared_;
  EngineSession session_;
  const tl::expected<SolveSettings, EngineError> settings_;  // of steps without options
  const Clock::time_point deadline_;
  const bool low_latency_;
  std::deque<StepOutcome> outcomes_;
};

class Embedded final : public Backend {
 public:
  explicit Embedded(const ConnectOptions& options)
      : shared_(std::make_shared<Shared>(options.threads > 0 ? options.threads : DefaultThreads())),
        low_latency_(options.low_latency) {}

  SolveOutcome Solve(const Problem& problem, const SolveOptions& options,
                     Timeout deadline) override {
    const CallLimits call = Until(deadline);
    const auto settings = CheckOptions(options);
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    return SolveIn(&engine(), problem, *settings, call);
  }

  std::vector<SolveOutcome> SolveBatch(std::span<const Problem> problems,
                                       const SolveOptions& options, Timeout deadline) override {
    std::vector<SolveOutcome> outcomes(problems.size(), tl::unexpected(Error()));
    const auto put = [&](int i, SolveOutcome outcome) { outcomes[i] = std::move(outcome); };
    const Status status = ForEach(problems, options, deadline, put);
    if (!status) outcomes.assign(problems.size(), tl::unexpected(status.error()));
    return outcomes;
  }

  Status StreamBatch(std::span<const Problem> problems, const SolveOptions& options,
                     Timeout deadline, const Client::BatchSink& sink) override {
    std::mutex mutex;
    const auto put = [&](int i, SolveOutcome outcome) {
      const std::lock_guard lock(mutex);
      sink(i, std::move(outcome));
    };
    return ForEach(problems, options, deadline, put);
  }

  DerivativesOutcome Differentiate(const Problem& problem, std::span<const Cotangent> cotangents,
                                   const DifferentiateOptions& options, Timeout deadline) override {
    const CallLimits call = Until(deadline);
    const auto settings = CheckOptions(options.solve);
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    return DifferentiateIn(&engine(), problem, cotangents, options, *settings, call);
  }

  std::vector<DerivativesOutcome> DifferentiateBatch(std::span<const DifferentiateRequest> requests,
                                                     const BatchLimits& limits,
                                                     Timeout deadline) override {
    const CallLimits call = Until(deadline);
    std::vector<DerivativesOutcome> outcomes(requests.size(), tl::unexpected(Error()));
    const auto budget = CheckTimeBudget(limits.time_budget, "time_budget");
    EngineStatus status = CheckBatchSize("requests", requests.size(), kLimits);
    if (status && !budget) status = tl::unexpected(budget.error());
    if (status) {
      std::vector<int64_t> sizes;
      for (const auto& request : requests) sizes.push_back(SizeOf(ViewOf(request.problem)));
      engine().ForLargestFirst(
          sizes, [&](int i) { outcomes[i] = DifferentiateInBatch(requests[i], *budget, call); });
      status = CheckLive(call);
    }
    if (!status) outcomes.assign(requests.size(), tl::unexpected(FromEngine(status.error())));
    return outcomes;
  }

  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(const SolveOptions& options,
                                                               Timeout deadline) override {
    auto settings = CheckOptions(options);
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    return std::make_unique<EmbeddedSteps>(shared_, *std::move(settings), Until(deadline).deadline,
                                           low_latency_);
  }

  tl::expected<ServerInfo, Error> Info(Timeout) override;

  tl::expected<bool, Error> Health() override { return true; }

  Status Solve(const v1::SolveRequest& request, v1::SolveResponse* response) override {
    return FromEngine(sap::Solve(&engine(), request, response));
  }
  Status Differentiate(const v1::DifferentiateRequest& request,
                       v1::DifferentiateResponse* response) override {
    return FromEngine(sap::Differentiate(&engine(), request, response));
  }

 private:
  Engine& engine() { return *shared_->engine; }

  // Solves the problems of a batch and passes each outcome on, concurrently.
  Status ForEach(std::span<const Problem> problems, const SolveOptions& options, Timeout deadline,
                 const Client::BatchSink& put) {
    const CallLimits call = Until(deadline);
    if (const auto checked = CheckBatchSize("problems", problems.size(), kLimits); !checked) {
      return FromEngine(checked);
    }
    const auto settings = CheckOptions(options);
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    std::vector<int64_t> sizes;
    for (const Problem& problem : problems) sizes.push_back(SizeOf(ViewOf(problem)));
    engine().ForLargestFirst(
        sizes, [&](int i) { put(i, SolveIn(&engine(), problems[i], *settings, call)); });
    return FromEngine(CheckLive(call));
  }

  DerivativesOutcome DifferentiateInBatch(
      const DifferentiateRequest& request,
      const std::optional<std::chrono::nanoseconds>& time_budget, const CallLimits& call) {
    auto settings = CheckOptions(request.options.solve);
    if (settings && settings->time_budget) settings = RefuseTimeBudgetInBatch();
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    settings->time_budget = time_budget;
    return DifferentiateIn(&engine(), request.problem, request.cotangents, request.options,
                           *settings, call);
  }

  const std::shared_ptr<Shared> shared_;
  const bool low_latency_;
};

tl::expected<ServerInfo, Error> Embedded::Info(Timeout) {
  // What one problem or batch may have is bounded, how many are solved at once is not.
  constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
  return ServerInfo{.version = SAP_VERSION,
                    .instruction_set = InstructionSet(),
                    .boot_id = BootId(),
                    .processors = std::thread::hardware_concurrency(),
                    .solver_threads = static_cast<uint32_t>(engine().threads()),
                    .max_message_bytes = std::numeric_limits<uint64_t>::max(),
                    .max_trees = static_cast<uint32_t>(kLimits.problem.max_trees),
                    .max_tree_dofs = static_cast<uint32_t>(kLimits.problem.max_tree_dofs),
                    .max_contacts = static_cast<uint32_t>(kLimits.problem.max_contacts),
                    .max_rows = static_cast<uint32_t>(kLimits.problem.max_rows),
                    .max_row_entries = static_cast<uint32_t>(kLimits.problem.max_row_entries),
                    .max_row_pairs = static_cast<uint32_t>(kLimits.problem.max_row_pairs),
                    .max_iterations = static_cast<uint32_t>(kLimits.max_iterations),
                    .max_concurrent_calls = kNoLimit,
                    .max_batch_problems = static_cast<uint32_t>(kLimits.max_batch_problems),
                    .max_sessions = kNoLimit,
                    .max_client_sessions = kNoLimit,
                    .max_steps_in_flight = kMaxStepsInFlight,
                    .max_solve_memory_bytes = static_cast<uint64_t>(kLimits.max_solve_memory_mib)
                                              << 20,
                    .max_solve_s = std::numeric_limits<double>::infinity(),
                    .high_priority = true,
                    .max_derivatives = static_cast<uint32_t>(kLimits.max_derivatives)};
}

}  // namespace

std::unique_ptr<Backend> EmbeddedBackend(const ConnectOptions& options) {
  return std::make_unique<Embedded>(options);
}

}  // namespace sap::client
