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
#include "solver/parallel/forked_threads.h"
#include "solver/parallel/idle_spinners.h"
#include "solver/problem/input_arrays.h"
#include "solver/problem/input_checker.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/input_selection.h"

namespace sap::client {
namespace {

using EngineClock = CallLimits::Clock;
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

Status FromEngine(const EngineStatus& status) {
  if (status) return {};
  return tl::unexpected(FromEngine(status.error()));
}

CallLimits Until(Timeout deadline, const CallOptions& context) {
  CallLimits call;
  if (deadline) call.deadline = call.arrival + *deadline;
  call.cancelled = context.cancelled;
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
  if (const auto checked = CheckOptions(options.solver); !checked) {
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
  solution.timings = {
      .decode_s = check_s, .islands_s = solved.times.islands_s, .solve_s = solved.times.solve_s};
  static_cast<ContactSolution&>(solution) = std::move(solved);
  const auto drop_unless = [&](int field, auto* value) {
    if (!mask[field]) *value = {};
  };
  drop_unless(Fields::kVelocityFieldNumber, &solution.velocity);
  drop_unless(Fields::kImpulseFieldNumber, &solution.impulse);
  drop_unless(Fields::kContactVelocityFieldNumber, &solution.contact_velocity);
  drop_unless(Fields::kRowImpulseFieldNumber, &solution.row_impulse);
  drop_unless(Fields::kRowVelocityFieldNumber, &solution.row_velocity);
  drop_unless(Fields::kAngularImpulseFieldNumber, &solution.angular_impulse);
  drop_unless(Fields::kDelassusEstimateFieldNumber, &solution.delassus_estimate);
  drop_unless(Fields::kCostFieldNumber, &solution.cost);
  drop_unless(Fields::kIslandOfTreeFieldNumber, &solution.island_of_tree);
  drop_unless(Fields::kIslandsFieldNumber, &solution.islands);
  drop_unless(Fields::kTimingsFieldNumber, &solution.timings);
  return solution;
}

Backend::SolveOutcome SolveIn(Engine* engine, const ContactProblemView& problem,
                              const SolveSettings& settings, const CallLimits& call) {
  ContactSolution solved;
  double check_s = 0;
  const EngineStatus status = engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus live = CheckLive(call); !live) return live;
    if (EngineStatus read = workspace.task.Read(problem); !read) return read;
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

Backend::DerivativesOutcome DifferentiateIn(Engine* engine, const DifferentiateView& request,
                                            const SolveSettings& settings, const CallLimits& call) {
  Derivatives derivatives;
  const EngineStatus status = engine->Run([&](Workspace& workspace) -> EngineStatus {
    if (EngineStatus live = CheckLive(call); !live) return live;
    SolveTask& task = workspace.task;
    if (EngineStatus read = task.Read(request.problem); !read) return read;
    const size_t gradients = request.derivatives.cotangents.size(),
                 tangents = request.derivatives.directions.size();
    if (EngineStatus checked = CheckNumber(gradients, tangents, kLimits); !checked) return checked;
    EngineStatus checked = CheckMemory(gradients, tangents, task.view(), kLimits);
    if (!checked) return checked;
    const std::vector<std::string_view> paths(request.wanted.begin(), request.wanted.end());
    const auto wanted = InputSelection::Make(paths, task.view(), request.given);
    if (!wanted) return RefuseField(wanted.error());
    if (EngineStatus read = task.Read(request.derivatives); !read) return read;
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

// Send solves the step; Take hands out its outcome.
class EmbeddedSteps final : public StepStream {
 public:
  EmbeddedSteps(std::shared_ptr<Shared> shared, SolveSettings settings,
                EngineClock::time_point deadline, bool low_latency)
      : shared_(std::move(shared)),
        session_(shared_->engine),
        settings_(settings),
        deadline_(deadline),
        low_latency_(low_latency && shared_->spinners.Start()) {
    if (low_latency_) shared_->spinners.KeepSpinning();
  }

  State state() const override {
    return {.arrived = static_cast<int>(outcomes_.size()),
            .max_in_flight = kMaxStepsInFlight,
            .ended = ended_};
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
    if (!status) outcome.solution = tl::unexpected(FromEngine(status.error()));
    if (low_latency_) shared_->spinners.KeepSpinning();
    // As over gRPC, the deadline is that of the session, not of the step.
    call.cancelled = nullptr;
    const EngineStatus live = CheckLive(call);
    if (live) {
      outcomes_.push_back(std::move(outcome));
    } else {
      ended_ = FromEngine(live.error());
    }
  }

  StepOutcome Take() override {
    StepOutcome outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    return outcome;
  }

  Status Withdraw(uint64_t) override {
    return tl::unexpected(Error{ErrorCode::kFailedPrecondition,
                                "the step is solved, as an embedded server does when it is sent",
                                ""});
  }

  void Reset() override { session_.Reset(); }
  Status Close() override { return {}; }
  void Notify(std::function<void()>) override {}

 private:
  EngineStatus Step(const ContactProblemView& problem, const std::optional<SolveOptions>& options,
                    const CallLimits& call, StepOutcome* outcome) {
    auto settings = options ? CheckOptions(*options) : settings_;
    if (!settings) return tl::unexpected(settings.error());
    if (EngineStatus live = CheckLive(call); !live) return live;
    EngineSession::Report report;
    ContactSolution solved;
    EngineStatus status = session_.Step(problem, settings->solver, call,
                                        {.time_budget = settings->time_budget}, &solved, &report);
    if (!status) return status;
    outcome->warm_started = report.warm_started;
    outcome->solution = SolutionOf(std::move(solved), settings->response_mask, report.check_s);
    return {};
  }

  const std::shared_ptr<Shared> shared_;
  EngineSession session_;
  const tl::expected<SolveSettings, EngineError> settings_;  // of steps without options
  const EngineClock::time_point deadline_;
  const bool low_latency_;
  std::deque<StepOutcome> outcomes_;
  std::optional<Error> ended_;
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

  void Solve(const ContactProblemView& problem, const SolveOptions& options, Timeout deadline,
             Where where, BuildPin*, Done<SolveOutcome> done) override {
    Run<SolveOutcome>(where, std::move(done), [=, this]() -> SolveOutcome {
      const CallLimits call = Until(deadline, options.call);
      const auto settings = CheckOptions(options);
      if (!settings) return tl::unexpected(FromEngine(settings.error()));
      return SolveIn(&engine(), problem, *settings, call);
    });
  }

  void SolveBatch(Problems problems, const SolveOptions& options, Timeout deadline, Where where,
                  Done<std::vector<SolveOutcome>> done) override {
    Run<std::vector<SolveOutcome>>(where, std::move(done), [=, this] {
      std::vector<SolveOutcome> outcomes(problems.size(), tl::unexpected(Error()));
      const auto put = [&](int i, SolveOutcome outcome) { outcomes[i] = std::move(outcome); };
      const Status status = ForEach(problems, options, deadline, put);
      if (!status) outcomes.assign(problems.size(), tl::unexpected(status.error()));
      return outcomes;
    });
  }

  void StreamBatch(Problems problems, const SolveOptions& options, Timeout deadline,
                   Client::BatchSink sink, Where where, Done<Status> done) override {
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
      const auto settings = CheckOptions(request.solve);
      if (!settings) return tl::unexpected(FromEngine(settings.error()));
      return DifferentiateIn(&engine(), request, *settings, call);
    });
  }

  void DifferentiateBatch(std::span<const DifferentiateView> requests, const BatchLimits& limits,
                          Timeout deadline, Where where,
                          Done<std::vector<DerivativesOutcome>> done) override {
    Run<std::vector<DerivativesOutcome>>(where, std::move(done), [=, this] {
      return DifferentiateAll(requests, limits, Until(deadline, limits.call));
    });
  }

  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(const SolveOptions& options,
                                                               const SessionOptions&,
                                                               Timeout deadline) override {
    auto settings = CheckOptions(options);
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    return std::make_unique<EmbeddedSteps>(shared_, *std::move(settings),
                                           Until(deadline, options.call).deadline, low_latency_);
  }

  void Info(const CallOptions&, Timeout, Where where,
            Done<tl::expected<ServerInfo, Error>> done) override {
    Run<tl::expected<ServerInfo, Error>>(where, std::move(done), [this] { return InfoNow(); });
  }
  void Health(const CallOptions&, Where where, Done<tl::expected<bool, Error>> done) override {
    Run<tl::expected<bool, Error>>(where, std::move(done), [] { return true; });
  }

  Status Solve(const v1::SolveRequest& request, BuildPin*, v1::SolveResponse* response) override {
    return FromEngine(sap::Solve(&engine(), request, response));
  }
  Status Differentiate(const v1::DifferentiateRequest& request,
                       v1::DifferentiateResponse* response) override {
    return FromEngine(sap::Differentiate(&engine(), request, response));
  }

 private:
  Engine& engine() { return *shared_->engine; }

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
                 const Client::BatchSink& put) {
    const CallLimits call = Until(deadline, options.call);
    if (const auto checked = CheckBatchSize("problems", problems.size(), kLimits); !checked) {
      return FromEngine(checked);
    }
    const auto settings = CheckOptions(options);
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
    std::vector<int64_t> sizes;
    for (const ContactProblemView& problem : problems) sizes.push_back(SizeOf(problem));
    engine().ForLargestFirst(
        sizes, [&](int i) { put(i, SolveIn(&engine(), problems[i], *settings, call)); });
    return FromEngine(CheckLive(call));
  }

  std::vector<DerivativesOutcome> DifferentiateAll(std::span<const DifferentiateView> requests,
                                                   const BatchLimits& limits,
                                                   const CallLimits& call) {
    std::vector<DerivativesOutcome> outcomes(requests.size(), tl::unexpected(Error()));
    const auto budget = CheckTimeBudget(limits.time_budget, "time_budget");
    EngineStatus status = CheckBatchSize("requests", requests.size(), kLimits);
    if (status && !budget) status = tl::unexpected(budget.error());
    if (status) {
      std::vector<int64_t> sizes;
      for (const DifferentiateView& request : requests) sizes.push_back(SizeOf(request.problem));
      engine().ForLargestFirst(
          sizes, [&](int i) { outcomes[i] = DifferentiateInBatch(requests[i], *budget, call); });
      status = CheckLive(call);
    }
    if (!status) outcomes.assign(requests.size(), tl::unexpected(FromEngine(status.error())));
    return outcomes;
  }

  DerivativesOutcome DifferentiateInBatch(
      const DifferentiateView& request, const std::optional<std::chrono::nanoseconds>& time_budget,
      const CallLimits& call) {
    auto settings = CheckOptions(request.solve);
    if (settings && settings->time_budget) settings = RefuseTimeBudgetInBatch();
    if (!settings) return tl::unexpected(FromEngine(settings.error()));
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

tl::expected<ServerInfo, Error> Embedded::InfoNow() {
  // Numbers of one problem or batch are bounded, the number of concurrent solves is not.
  constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
  constexpr uint64_t kAnyBytes = std::numeric_limits<uint64_t>::max();
  constexpr double kAnyTime = std::numeric_limits<double>::infinity();
  return ServerInfo{.version = SAP_VERSION,
                    .instruction_set = InstructionSet(),
                    .boot_id = BootId(),
                    .processors = std::thread::hardware_concurrency(),
                    .solver_threads = static_cast<uint32_t>(engine().threads()),
                    .max_message_bytes = kAnyBytes,
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
                    .max_solve_s = kAnyTime,
                    .high_priority = true,
                    .max_derivatives = static_cast<uint32_t>(kLimits.max_derivatives),
                    .max_client_calls = kNoLimit,
                    .max_held_bytes = kAnyBytes,
                    .max_client_bytes = kAnyBytes,
                    .queue_timeout_s = kAnyTime,
                    .read_timeout_s = kAnyTime,
                    .session_idle_s = kAnyTime,
                    .connection_age_s = kAnyTime};
}

}  // namespace

std::unique_ptr<Backend> EmbeddedBackend(const ConnectOptions& options) {
  return std::make_unique<Embedded>(options);
}

}  // namespace sap::client
