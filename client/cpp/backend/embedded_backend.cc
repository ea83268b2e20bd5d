#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "client/cpp/backend/backend.h"
#include "solver/build_info.h"
#include "solver/engine/boot_id.h"
#include "solver/engine/engine.h"
#include "solver/engine/engine_limits.h"
#include "solver/engine/engine_session.h"
#include "solver/parallel/forked_threads.h"
#include "solver/parallel/idle_spinners.h"
#include "solver/problem/input_arrays.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/input_selection.h"

namespace sap::client {
namespace {

using EngineClock = CallLimits::Clock;

// Sessions share them, and may outlive the client.
struct Shared {
  explicit Shared(int threads)
      : engine(std::make_shared<Engine>(threads)),
        spinners(std::make_unique<IdleSpinners>(std::min(DefaultIdleSpinners(), threads))) {}
  ~Shared() {
    // Their destructor would wait for threads that a child of fork() does not have.
    if (generation != ForkGeneration()) static_cast<void>(spinners.release());
  }

  const int generation{ForkGeneration()};
  const std::shared_ptr<Engine> engine;
  std::unique_ptr<IdleSpinners> spinners;
};

Status StatusOf(const EngineStatus& status) {
  if (status) return {};
  return FromEngine(status.error());
}

CallLimits Until(Timeout deadline, const CallOptions& context) {
  CallLimits call;
  if (deadline) call.deadline = call.arrival + *deadline;
  call.cancelled = context.cancelled;
  return call;
}

tl::expected<SolveSettings, EngineError> SettingsOf(const SolveOptions& options) {
  return CheckSettings({.solver = options.solver,
                        .time_budget = options.time_budget,
                        .mask = {options.response_mask.begin(), options.response_mask.end()}},
                       kInProcessLimits);
}

// The fields that the mask selects.
Solution SolutionOf(SolveAnswer&& answer, const SolutionMask& mask) {
  Solution solution;
  ContactSolution& solved = answer.solution;
  size_t field = 0;
#define SAP_OUTPUT(name, ...) \
  if (mask[field++]) solution.name = std::move(solved.name);
#include "solver/problem/solution_fields.inc"
  if (mask[field++]) solution.delassus_estimate = std::move(solved.delassus_estimate);
  if (mask[field++]) solution.cost = solved.cost;
  if (mask[field++]) solution.island_of_tree = std::move(solved.island_of_tree);
  if (mask[field++]) solution.islands = std::move(solved.islands);
  if (mask[field++]) {
    solution.timings = {.decode_s = answer.check_s,
                        .islands_s = solved.times.islands_s,
                        .solve_s = solved.times.solve_s};
  }
  return solution;
}

SolveOutcome SolveIn(Engine* engine, const ContactProblemView& problem,
                     const SolveSettings& settings, const CallLimits& call,
                     SharedIslands* shared = nullptr) {
  Solution solution;
  const EngineStatus status =
      engine->Answer({.problem = problem, .settings = settings, .shared = shared}, call,
                     [&](const SolveTask&, SolveAnswer& answer) {
                       solution = SolutionOf(std::move(answer), settings.mask);
                     });
  if (!status) return FromEngine(status.error());
  return solution;
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

Derivatives DerivativesOf(const SolveTask& task, SolveAnswer&& answer, const SolutionMask& mask) {
  const InputSelection& wanted = task.wanted();
  sap::Derivatives& computed = answer.derivatives;
  Derivatives derivatives;
  for (size_t k = 0; k < computed.gradients.size(); ++k) {
    InputDifferential inputs;
    GradientToInputs(task.view(), task.problem(), k, &computed, &inputs);
    sap::Gradient from = std::move(computed.gradients[k]);  // freed once it is converted
    Gradient& gradient = derivatives.gradients.emplace_back();
    gradient.problem = DerivativeOf(std::move(inputs), wanted);
    if (wanted.applied_impulse()) gradient.applied_impulse = std::move(from.applied_impulse);
    if (wanted.delassus_estimate()) gradient.delassus_estimate = std::move(from.problem.w);
  }
  derivatives.tangents = std::move(computed.tangents);
  derivatives.kink_margin = std::move(computed.kink_margin);
  derivatives.adjoint_status = std::move(computed.adjoint_status);
  derivatives.solution = SolutionOf(std::move(answer), mask);
  return derivatives;
}

DerivativesOutcome DifferentiateIn(Engine* engine, const DifferentiateView& request,
                                   const SolveSettings& settings, const CallLimits& call) {
  DerivativesRequest asked = request.derivatives;
  asked.wanted = {request.wanted.begin(), request.wanted.end()};
  asked.given = request.given;
  Derivatives derivatives;
  const EngineStatus status =
      engine->Answer({request.problem, settings, std::move(asked)}, call,
                     [&](const SolveTask& task, SolveAnswer& answer) {
                       derivatives = DerivativesOf(task, std::move(answer), settings.mask);
                     });
  if (!status) return FromEngine(status.error());
  return derivatives;
}

// Send solves the step; Take hands out its outcome.
class EmbeddedSteps final : public StepStream {
 public:
  EmbeddedSteps(std::shared_ptr<Shared> shared, SolveSettings settings,
                EngineClock::time_point deadline, bool low_latency)
      : shared_(std::move(shared)),
        session_(shared_->engine),
        settings_(settings),
        deadline_(deadline),
        low_latency_(low_latency && shared_->spinners->Start()) {
    if (low_latency_) shared_->spinners->KeepSpinning();
  }

  State state() const override {
    return {.arrived = static_cast<int>(outcomes_.size()),
            .max_in_flight = std::numeric_limits<int>::max(),
            .ended = Ended()};
  }

  // Nothing has to be waited for.
  bool Await(const std::function<bool(const State&)>& is_ready, const WaitLimit&) override {
    return is_ready(state());
  }

  void Send(uint64_t step_id, const ContactProblemView& problem,
            const std::optional<SolveOptions>& options, const WaitLimit& limit) override {
    CallLimits call;
    call.deadline = deadline_;
    call.cancelled = limit.cancelled;
    StepOutcome outcome{.step_id = step_id, .solution = tl::unexpected(Error())};
    const EngineStatus status =
        CatchExceptions([&] { return Step(problem, options, call, &outcome); });
    if (!status) outcome.solution = FromEngine(status.error());
    if (low_latency_) shared_->spinners->KeepSpinning();
    // As over gRPC, the deadline is that of the session, not of the step.
    if (Ended()) return;
    outcomes_.push_back(std::move(outcome));
    if (changed_) changed_();
  }

  StepOutcome Take() override {
    StepOutcome outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    return outcome;
  }

  Status Withdraw(uint64_t) override {
    return tl::unexpected(Error{ErrorCode::kFailedPrecondition,
                                "a step in this process is solved when it is sent", ""});
  }

  void Reset() override { session_.Reset(); }
  Status Close() override { return outcomes_.clear(), Status(); }
  void Notify(std::function<void()> changed) override { changed_ = std::move(changed); }

 private:
  std::optional<Error> Ended() const {
    if (deadline_ == EngineClock::time_point::max() || EngineClock::now() < deadline_) return {};
    return Error{ErrorCode::kDeadlineExceeded, "the deadline of the session has passed", ""};
  }

  EngineStatus Step(const ContactProblemView& problem, const std::optional<SolveOptions>& options,
                    const CallLimits& call, StepOutcome* outcome) {
    auto settings = options ? SettingsOf(*options) : settings_;
    if (!settings) return tl::unexpected(settings.error());
    SolveAnswer answer;
    EngineStatus status = session_.Step({problem, *settings}, call, &answer);
    if (!status) return status;
    outcome->warm_started = answer.warm_started;
    outcome->solution = SolutionOf(std::move(answer), settings->mask);
    return {};
  }

  const std::shared_ptr<Shared> shared_;
  EngineSession session_;
  const tl::expected<SolveSettings, EngineError> settings_;  // of steps without options
  const EngineClock::time_point deadline_;
  const bool low_latency_;
  std::deque<StepOutcome> outcomes_;
  std::function<void()> changed_;  // empty: nobody is told
};

class Embedded final : public Backend {
 public:
  explicit Embedded(const ConnectOptions& options)
      : shared_(std::make_shared<Shared>(options.threads > 0 ? options.threads : DefaultThreads())),
        low_latency_(options.low_latency) {}

  ~Embedded() override {
    if (generation_ != ForkGeneration())
      static_cast<void>(threads_.release());  // which this process does not have
  }

  bool in_process() const override { return true; }

  void Solve(const ContactProblemView& problem, const SolveOptions& options, Timeout deadline,
             Where where, BuildPin*, Done<SolveOutcome> done) override {
    if (where == Where::kHere) return done(SolveNow(problem, options, deadline));
    Run<SolveOutcome>(where, std::move(done),
                      [=, this] { return SolveNow(problem, options, deadline); });
  }

  void SolveBatch(Problems problems, const SolveOptions& options, Timeout deadline, Where where,
                  Done<Outcomes<SolveOutcome>> done) override {
    using Batch = Outcomes<SolveOutcome>;
    Run<Batch>(where, std::move(done), [=, this]() -> Batch {
      std::vector<SolveOutcome> outcomes(problems.size(), tl::unexpected(Error()));
      const auto put = [&](int i, SolveOutcome outcome) { outcomes[i] = std::move(outcome); };
      const Status status = ForEach(problems, options, deadline, put);
      if (!status) return tl::unexpected(status.error());
      return outcomes;
    });
  }

  void StreamBatch(Problems problems, const SolveOptions& options, Timeout deadline, BatchSink sink,
                   Where where, Done<Status> done) override {
    Run<Status>(where, std::move(done), [=, this] {
      std::mutex mutex;
      return ForEach(problems, options, deadline, [&](int i, SolveOutcome outcome) {
        const std::lock_guard lock(mutex);
        sink(i, std::move(outcome));
      });
    });
  }

  void Differentiate(const DifferentiateView& request, Timeout deadline, Where where,
                     Done<DerivativesOutcome> done) override {
    Run<DerivativesOutcome>(where, std::move(done), [=, this]() -> DerivativesOutcome {
      const CallLimits call = Until(deadline, request.solve.call);
      const auto settings = SettingsOf(request.solve);
      if (!settings) return FromEngine(settings.error());
      return DifferentiateIn(&engine(), request, *settings, call);
    });
  }

  void DifferentiateBatch(std::span<const DifferentiateView> requests, const BatchLimits& limits,
                          Timeout deadline, Where where,
                          Done<Outcomes<DerivativesOutcome>> done) override {
    Run<Outcomes<DerivativesOutcome>>(where, std::move(done), [=, this] {
      return DifferentiateAll(requests, limits, Until(deadline, limits.call));
    });
  }

  tl::expected<IslandForecast, Error> FindIslands(const ContactProblemView& problem) override {
    IslandForecast forecast;
    const EngineStatus status = engine().Run([&](Workspace& workspace) -> EngineStatus {
      if (workspace.layout.Read(problem)) {
        ForecastIslands(workspace.layout, &forecast);
        return {};
      }
      if (EngineStatus read = workspace.task.Read(problem); !read) return read;
      return tl::unexpected(EngineError{EngineErrorCode::kInvalidArgument,
                                        "an array that is not read has a length that fits "
                                        "nothing; leave it empty",
                                        ""});
    });
    if (!status) return FromEngine(status.error());
    return forecast;
  }

  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(const SolveOptions& options,
                                                               const SessionOptions& of_session,
                                                               Timeout deadline) override {
    auto settings = SettingsOf(options);
    if (!settings) return FromEngine(settings.error());
    return std::make_unique<EmbeddedSteps>(shared_, *settings,
                                           Until(deadline, options.call).deadline,
                                           of_session.low_latency.value_or(low_latency_));
  }

  void Info(const CallOptions&, Timeout, Where where,
            Done<tl::expected<ServerInfo, Error>> done) override {
    Run<tl::expected<ServerInfo, Error>>(where, std::move(done), [this] { return InfoNow(); });
  }
  void Health(const CallOptions&, Where where, Done<tl::expected<bool, Error>> done) override {
    Run<tl::expected<bool, Error>>(where, std::move(done), [] { return true; });
  }

 private:
  Engine& engine() { return *shared_->engine; }

  SolveOutcome SolveNow(const ContactProblemView& problem, const SolveOptions& options,
                        Timeout deadline) {
    const CallLimits call = Until(deadline, options.call);
    const auto settings = SettingsOf(options);
    if (!settings) return FromEngine(settings.error());
    return SolveIn(&engine(), problem, *settings, call);
  }

  template <typename Outcome, typename Body>
  void Run(Where where, Done<Outcome> done, const Body& body) {
    if (where == Where::kHere) return done(body());
    const std::lock_guard lock(mutex_);
    if (generation_ != ForkGeneration()) static_cast<void>(threads_.release());
    if (threads_ == nullptr) threads_ = std::make_unique<ForkedThreads>(engine().threads());
    generation_ = ForkGeneration();
    threads_->Enqueue([done = std::move(done), body] { done(body()); });
  }

  // Solves the problems of a batch and passes each outcome on, concurrently.
  Status ForEach(Problems problems, const SolveOptions& options, Timeout deadline,
                 const BatchSink& put) {
    const CallLimits call = Until(deadline, options.call);
    const auto settings = SettingsOf(options);
    if (!settings) return FromEngine(settings.error());
    std::vector<int64_t> sizes;
    for (const ContactProblemView& problem : problems) sizes.push_back(SizeOf(problem));
    SharedIslands shared;
    engine().ForLargestFirst(
        sizes, [&](int i) { put(i, SolveIn(&engine(), problems[i], *settings, call, &shared)); });
    return StatusOf(CheckLive(call));
  }

  Outcomes<DerivativesOutcome> DifferentiateAll(std::span<const DifferentiateView> requests,
                                                const BatchLimits& limits, const CallLimits& call) {
    std::optional<std::chrono::nanoseconds> time_budget;
    if (limits.time_budget) {
      const auto budget = CheckTimeBudget(*limits.time_budget, "time_budget");
      if (!budget) return FromEngine(budget.error());
      time_budget = *budget;
    }
    std::vector<DerivativesOutcome> outcomes(requests.size(), tl::unexpected(Error()));
    std::vector<int64_t> sizes;
    for (const DifferentiateView& request : requests) sizes.push_back(SizeOf(request.problem));
    engine().ForLargestFirst(
        sizes, [&](int i) { outcomes[i] = DifferentiateInBatch(requests[i], time_budget, call); });
    if (const EngineStatus live = CheckLive(call); !live) return FromEngine(live.error());
    return outcomes;
  }

  DerivativesOutcome DifferentiateInBatch(
      const DifferentiateView& request, const std::optional<std::chrono::nanoseconds>& time_budget,
      const CallLimits& call) {
    auto settings = SettingsOf(request.solve);
    if (settings && settings->time_budget) settings = RefuseTimeBudgetInBatch();
    if (!settings) return FromEngine(settings.error());
    settings->time_budget = time_budget;
    return DifferentiateIn(&engine(), request, *settings, call);
  }

  tl::expected<ServerInfo, Error> InfoNow();

  const std::shared_ptr<Shared> shared_;
  const bool low_latency_;
  std::mutex mutex_;
  int generation_{ForkGeneration()};
  std::unique_ptr<ForkedThreads> threads_;  // of calls in the background; null before the first
};

// The largest number.
struct NoLimit {
  template <typename Number>
  constexpr operator Number() const {
    using Limits = std::numeric_limits<Number>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
};

tl::expected<ServerInfo, Error> Embedded::InfoNow() {
  constexpr NoLimit kNoLimit{};
  ServerInfo info{.version = SAP_VERSION,
                  .instruction_set = InstructionSet(),
                  .boot_id = BootId(),
                  .processors = std::thread::hardware_concurrency(),
                  .solver_threads = static_cast<uint32_t>(engine().threads())};
#define SAP_LIMIT(type, name, here, server) info.name = static_cast<type>(here);
#include "solver/engine/server_limits.inc"
  return info;
}

}  // namespace

std::unique_ptr<Backend> EmbeddedBackend(const ConnectOptions& options) {
  return std::make_unique<Embedded>(options);
}

}  // namespace sap::client
