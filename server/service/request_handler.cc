#include "server/service/request_handler.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "server/server_identity.h"
#include "server/service/failure_encoder.h"
#include "server/service/memory_reserve.h"
#include "solver/build_info.h"
#include "solver/engine/boot_id.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

// For this process itself, whose solves delay no client of a server.
constexpr double kUnlimited_s = 1e9;

int64_t BytesOf(const google::protobuf::Message& message) {
  return static_cast<int64_t>(message.ByteSizeLong());
}

// Demand of a Differentiate call: request, derivatives and answer. Oversized requests are rejected
// later, so only the request counts.
Demand DemandOf(const v1::DifferentiateRequest& request, const ServerConfig& config) {
  Demand demand{BytesOf(request) + BytesOfSolve(request.problem(), request.options()),
                PredictedWork(request.problem())};
  if (const auto size = CheckSize(request, config)) {
    demand.bytes += size->answer_bytes + size->working_bytes;
    demand.work_s *= RelativeWork(request.cotangents_size() + request.tangents_size());
  }
  return demand;
}

// As many problems are solved at a time as there are threads. Work is that of all islands; what
// turns out to be shared is released.
Demand DemandOf(const Batch::Problems& problems, int64_t shared_bytes, int threads) {
  Demand demand{.bytes = shared_bytes};
  int64_t largest_solve = 0;
  for (const Batch::Problem& problem : problems) {
    demand.bytes += problem.bytes;
    demand.work_s += problem.work_s;
    largest_solve = std::max(largest_solve, problem.solve_bytes);
  }
  demand.bytes += std::min<int64_t>(threads, std::ssize(problems)) * largest_solve;
  return demand;
}

template <typename Request>
const v1::ContactProblem* ProblemOf(const Request& request) {
  return request.has_problem() ? &request.problem() : nullptr;
}

RequestHandler::BatchSink SinkOf(v1::SolveBatchResponse* response) {
  return [response](int index, v1::Outcome outcome) {
    response->mutable_outcomes(index)->Swap(&outcome);
  };
}

// All answers of a batch are one message.
ServiceStatus CheckAnswerBytes(const v1::DifferentiateBatchRequest& batch,
                               const ServerConfig& config) {
  int64_t bytes = 0;
  for (const v1::DifferentiateRequest& request : batch.requests()) {
    bytes += CheckSize(request, config).value_or(DerivativesSize()).answer_bytes;
  }
  return CheckAnswerBytes(bytes, config);
}

// High if all of its problems ask for it.
Priority CommonPriority(const v1::DifferentiateBatchRequest& batch) {
  const bool high = std::ranges::all_of(batch.requests(), [](const auto& request) {
    return PriorityOf(request.options()) == Priority::kHigh;
  });
  return high ? Priority::kHigh : Priority::kNormal;
}

// Starts a call. Memory that runs out before it is started is its answer.
template <typename Start>
void StartOrRefuse(const Start& start, RequestHandler::Done done, void* context) {
  const ServiceStatus started = CatchExceptions(start);
  if (!started) done(context, started);
}

}  // namespace

// A unary call in progress. Pooled, so that a problem with a known pattern allocates no memory.
struct RequestHandler::Job {
  RequestHandler* handler{nullptr};
  SolveJob solve;
  google::protobuf::Message* response{nullptr};
  v1::ContactSolution* answer{nullptr};  // within the response
  Done done{nullptr};
  void* context{nullptr};
  Admitted admitted{};
  // Part of the demand: what the solve takes if it does not go by shards. 0: nothing is released.
  int64_t solve_bytes{0};
  QueuedTask task;

  size_t storage_bytes() const { return solve.storage_bytes(); }
};

RequestHandler::RequestHandler(const ServerConfig& config, RequestRecorder* recorder,
                               Metrics* metrics)
    : config_(config),
      telemetry_{recorder, metrics},
      admission_(config.admission, config.threads),
      this_process_(admission_.AccountOf("this process")),
      arena_(config.threads),
      queue_(&arena_, config.queue_timeout_s, config.solver_nice),
      idle_spinners_(std::min(config.idle_spinners, config.threads)),
      idle_solvers_(config.threads + config.io_threads),
      idle_jobs_(config.threads + config.io_threads),
      idle_solves_(config.threads) {
  Entitlements own = config.admission.client;
  own.max_solve_s = kUnlimited_s;
  own.high_priority = true;
  this_process_->SetEntitlements(own);
}

RequestHandler::~RequestHandler() = default;

tl::expected<RequestHandler::Reservation, ServiceError> RequestHandler::ReserveCall(
    ClientAccount* account, Priority priority) {
  tl::expected<Reservation, ServiceError> reservation =
      admission_.CheckRate(account)
          .and_then([&] { return admission_.CheckMemory(); })
          .and_then([&] { return admission_.CheckCalls(account); })
          .and_then([&] { return queue_.Reserve(account, priority); });
  if (!reservation) telemetry_.CountRefusal(reservation.error());
  return reservation;
}

ServiceStatus RequestHandler::CheckRate(ClientAccount* account) {
  ServiceStatus checked = admission_.CheckRate(account);
  if (!checked) telemetry_.CountRefusal(checked.error());
  return checked;
}

MemoryGuard::Change RequestHandler::Sweep(const std::function<ProcessMemory()>& read_memory,
                                          Clock::time_point now) {
  constexpr std::chrono::seconds kPeriod{1};
  MemoryGuard::Change change = MemoryGuard::Change::kNone;
  if (now >= next_look_) {
    next_look_ = now + kPeriod;
    const auto read_all = [&] {
      ProcessMemory memory = read_memory();
      child_bytes_ = other_memory_.child_bytes();
      memory.resident_bytes += child_bytes_;
      return memory;
    };
    change = memory_guard_.Look({read_all, [this] {
                                   other_memory_.free_caches();
                                   idle_solvers_.Clear();
                                   idle_jobs_.Clear();
                                   idle_solves_.Clear();
                                   heap_trimmer_.Trim();
                                 }});
  }
  admission_.SetShortOfMemory(memory_guard_.is_short() || MemoryReserve::IsSpent());
  heap_trimmer_.Sweep(now, memory_guard_.memory().resident_bytes - child_bytes_ - counted_bytes());
  return change;
}

void RequestHandler::Start(const v1::SolveRequest& request, const CallContext& call,
                           v1::SolveResponse* response, Done done, void* context) {
  StartOrRefuse([&] { return StartJob(MakeJob(request, call, response), done, context); }, done,
                context);
}

void RequestHandler::StartDifferentiate(const v1::DifferentiateRequest& request,
                                        const CallContext& call,
                                        v1::DifferentiateResponse* response, Done done,
                                        void* context) {
  StartOrRefuse([&] { return StartJob(MakeJob(request, call, response), done, context); }, done,
                context);
}

void RequestHandler::StartBatch(const v1::SolveBatchRequest& request, const CallContext& call,
                                v1::SolveBatchResponse* response, Done done, void* context) {
  StartOrRefuse(
      [&] {
        BatchCall batch = BatchCallOf(request);
        batch.begin = [&request, response] {
          for (int i = 0; i < request.problems_size(); ++i) response->add_outcomes();
        };
        auto solve = SolverOf(request, batch.shared_bytes, call, SinkOf(response));
        return StartBatch(std::move(batch), call, std::move(solve), done, context);
      },
      done, context);
}

void RequestHandler::StartStreamBatch(const v1::StreamBatchRequest& request,
                                      const CallContext& call, BatchSink sink, Done done,
                                      void* context) {
  StartOrRefuse(
      [&] {
        BatchCall batch = BatchCallOf(request);
        auto solve = SolverOf(request, batch.shared_bytes, call, std::move(sink));
        return StartBatch(std::move(batch), call, std::move(solve), done, context);
      },
      done, context);
}

void RequestHandler::StartDifferentiateBatch(const v1::DifferentiateBatchRequest& request,
                                             const CallContext& call,
                                             v1::DifferentiateBatchResponse* response, Done done,
                                             void* context) {
  StartOrRefuse(
      [&] {
        BatchCall batch = BatchCallOf(request);
        batch.begin = [&request, response] {
          for (int i = 0; i < request.requests_size(); ++i) response->add_outcomes();
        };
        return StartBatch(std::move(batch), call, SolverOf(request, call, response), done, context);
      },
      done, context);
}

tl::expected<std::unique_ptr<Session>, ServiceError> RequestHandler::NewSession(
    ClientAccount* account) {
  if (account == nullptr) account = this_process_.get();
  if (const ServiceStatus admitted = admission_.AdmitSession(account); !admitted) {
    telemetry_.CountRefusal(admitted.error());
    return tl::unexpected(admitted.error());
  }
  return std::make_unique<Session>(SessionResources{config_, &arena_, &queue_, &idle_spinners_,
                                                    &admission_, &heap_trimmer_, account,
                                                    telemetry_});
}

v1::GetServerInfoResponse RequestHandler::Info(const ClientAccount* account) const {
  const Entitlements& client =
      account != nullptr ? account->entitlements() : this_process_->entitlements();
  const ServerConfig& config = config_;
  v1::GetServerInfoResponse info;
  info.set_version(ServerVersion());
#define SAP_LIMIT(type, name, here, server) \
  info.mutable_limits()->set_##name(static_cast<type>(server));
#include "solver/engine/server_limits.inc"
  info.set_processors(std::thread::hardware_concurrency());
  info.set_solver_threads(config_.threads);
  info.set_instruction_set(InstructionSet());
  info.set_boot_id(BootId());
  return info;
}

// On success the call counts against the limits until Release.
tl::expected<RequestHandler::Admitted, ServiceError> RequestHandler::Admit(const CallContext& call,
                                                                           const Demand& demand) {
  ClientAccount* account = call.account != nullptr ? call.account : this_process_.get();
  const ServiceStatus checked =
      admission_.CheckMemory().and_then([&] { return admission_.Admit(account, demand); });
  if (!checked) {
    telemetry_.CountRefusal(checked.error());
    return tl::unexpected(checked.error());
  }
  return Admitted{account, demand};
}

RequestHandler::JobOrError RequestHandler::MakeJob(const v1::SolveRequest& request,
                                                   const CallContext& call,
                                                   v1::SolveResponse* response) {
  std::unique_ptr<Job> job = TakeJob(response);
  job->solve.Begin(ProblemOf(request), request.options(), call);
  job->solve_bytes = BytesOfSolve(request.problem(), request.options());
  const Demand demand{BytesOf(request) + job->solve_bytes,
                      PredictedWork(request.problem(), request.options())};
  return Admit(std::move(job), call, demand);
}

RequestHandler::JobOrError RequestHandler::MakeJob(const v1::DifferentiateRequest& request,
                                                   const CallContext& call,
                                                   v1::DifferentiateResponse* response) {
  std::unique_ptr<Job> job = TakeJob(response);
  job->solve.Begin(request, call, response);
  return Admit(std::move(job), call, DemandOf(request, config_));
}

template <typename Response>
std::unique_ptr<RequestHandler::Job> RequestHandler::TakeJob(Response* response) {
  std::unique_ptr<Job> job = idle_jobs_.Acquire();
  if (job == nullptr) job = std::make_unique<Job>();
  job->handler = this;
  job->response = response;
  job->answer = response->mutable_solution();
  job->solve_bytes = 0;
  return job;
}

// Last, so that nothing that allocates comes between it and the call that releases it.
RequestHandler::JobOrError RequestHandler::Admit(std::unique_ptr<Job> job, const CallContext& call,
                                                 const Demand& demand) {
  const auto admitted = Admit(call, demand);
  if (!admitted) {
    job->response->Clear();
    KeepOrFree(std::move(job), &idle_jobs_);
    return tl::unexpected(admitted.error());
  }
  job->admitted = *admitted;
  return job;
}

ServiceStatus RequestHandler::StartJob(JobOrError made, Done done, void* context) {
  if (!made) return tl::unexpected(made.error());
  std::unique_ptr<Job> job = std::move(*made);
  job->done = done;
  job->context = context;
  SolveJob& solve = job->solve;
  if (solve.IsLongMessage(config_)) return Enqueue(std::move(job)), ServiceStatus();
  const Clock::time_point begin = Clock::now();
  ServiceStatus status = Decode(job.get());
  ClientAccount* const account = job->admitted.account;
  if (status && !(solve.IsSmall(config_) && queue_.MayRunInline(*account))) {
    return Enqueue(std::move(job)), ServiceStatus();
  }
  if (status) {
    status = Run(&solve, /*arena=*/nullptr, job->answer);
    queue_.ChargeInline(account, Clock::now() - begin);
  }
  End(std::move(job), status);
  return {};
}

// A scene that goes by shards takes less memory than it was admitted with, which only a look at all
// of its indices tells.
ServiceStatus RequestHandler::Decode(Job* job) {
  if (job->solve.decoded()) return {};
  return job->solve.Decode(config_).map([&] {
    const int64_t spared = job->solve_bytes - job->solve.task().solve_bytes();
    Admitted& admitted = job->admitted;
    if (spared > 0) admission_.ReleasePart(admitted.account, {.bytes = spared}, &admitted.demand);
  });
}

ServiceStatus RequestHandler::Run(SolveJob* solve, TaskArena* arena, v1::ContactSolution* answer) {
  return CatchExceptions([&]() -> ServiceStatus {
    std::unique_ptr<Solver> solver = idle_solvers_.Acquire();
    if (solver == nullptr) solver = std::make_unique<Solver>(nullptr);
    solver->UseArena(solve->IsSmall(config_) ? nullptr : arena);
    ServiceStatus status = solve->Solve(solver.get(), answer);
    KeepOrFree(std::move(solver), &idle_solvers_);
    return status;
  });
}

void RequestHandler::Enqueue(std::unique_ptr<Job> job) {
  QueuedTask& task = job->task;
  task.run = [](void* context, Dispatch dispatch) {
    std::unique_ptr<Job> job(static_cast<Job*>(context));
    job->solve.AddQueueTime(SecondsSince(job->task.queued));
    RequestHandler* handler = job->handler;
    ServiceStatus status = tl::unexpected(handler->queue_.Expired());
    if (dispatch != Dispatch::kExpired) {
      status = ToServiceStatus(CheckLive(job->solve.call()))
                   .and_then([&] { return handler->Decode(job.get()); })
                   .and_then([&] {
                     return handler->Run(&job->solve, handler->ArenaFor(dispatch), job->answer);
                   });
    }
    handler->End(std::move(job), status);
  };
  task.context = job.get();
  task.account = job->admitted.account;
  task.priority = PriorityOf(job->solve.options());
  task.work_s = job->admitted.demand.work_s;
  // After Push another thread may own the job.
  Job* const pushed_job = job.release();
  if (const ServiceStatus pushed = queue_.Push(&pushed_job->task); !pushed) {
    End(std::unique_ptr<Job>(pushed_job), pushed);
  }
}

// Returns the job to the pool before `done`, which may release the last reference to the handler.
void RequestHandler::End(std::unique_ptr<Job> job, const ServiceStatus& status) {
  job->solve.Report(status, telemetry_);
  if (!status) job->response->Clear();
  const Done done = job->done;
  void* const context = job->context;
  Release(job->admitted);
  KeepOrFree(std::move(job), &idle_jobs_);
  if (done != nullptr) done(context, status);
}

// The call of SolveBatch or StreamBatch. The request must live as long as the call.
template <typename Request>
RequestHandler::BatchCall RequestHandler::BatchCallOf(const Request& request) const {
  BatchCall batch{{}, PriorityOf(request.options()), {}};
  const bool shares = request.problems_size() > 1;
  int64_t bytes = 0;
  for (const v1::ContactProblem& problem : request.problems()) {
    const int64_t bytes_of_problem = BytesOf(problem);
    bytes += bytes_of_problem;
    // Keys of its islands and arrays of what is left of it.
    const int64_t copied = shares ? 2 * bytes_of_problem : 0;
    batch.problems.push_back({bytes_of_problem, BytesOfSolve(problem, request.options()) + copied,
                              PredictedWork(problem, request.options())});
  }
  if (shares) batch.shared_bytes = std::min(bytes, SharedIslands::kMostBytes);
  batch.check = [this, &request]() -> ServiceStatus {
    return ToServiceStatus(CheckBatchSize("problems", request.problems_size(), config_))
        .and_then([&]() -> ServiceStatus {
          const auto settings = DecodeOptions(request.options(), config_);
          if (!settings) return tl::unexpected(settings.error());
          return {};
        });
  };
  return batch;
}

RequestHandler::BatchCall RequestHandler::BatchCallOf(
    const v1::DifferentiateBatchRequest& request) const {
  BatchCall batch{{}, CommonPriority(request), {}};
  for (const v1::DifferentiateRequest& problem : request.requests()) {
    const Demand demand = DemandOf(problem, config_);
    const int64_t solve_bytes = BytesOfSolve(problem.problem(), problem.options());
    batch.problems.push_back({demand.bytes - solve_bytes, solve_bytes, demand.work_s});
  }
  batch.check = [this, &request]() -> ServiceStatus {
    return ToServiceStatus(CheckBatchSize("requests", request.requests_size(), config_))
        .and_then([&]() -> ServiceStatus {
          if (request.has_time_budget()) {
            const auto budget = DecodeTimeBudget(request.time_budget(), "time_budget");
            if (!budget) return tl::unexpected(budget.error());
          }
          return CheckAnswerBytes(request, config_);
        });
  };
  return batch;
}

ServiceStatus RequestHandler::StartBatch(BatchCall batch, const CallContext& call,
                                         Batch::SolveProblem solve, Done done, void* context) {
  const auto admitted = Admit(call, DemandOf(batch.problems, batch.shared_bytes, config_.threads));
  if (!admitted) return tl::unexpected(admitted.error());
  const auto held = std::make_shared<Admitted>(*admitted);
  const Batch::QueueTarget target{
      &queue_, config_.threads, admitted->account, batch.priority, [this, held](double work_s) {
        admission_.ReleasePart(held->account, {.work_s = work_s}, &held->demand);
      }};
  ServiceStatus started = CatchExceptions([&]() -> ServiceStatus {
    ServiceStatus checked = batch.check();
    if (checked) checked = queue_.CheckWait(*target.account, target.priority);
    if (!checked) {
      telemetry_.CountRefusal(checked.error());
      return checked;
    }
    batch.begin();
    Batch::Start(std::move(batch.problems), target, std::move(solve),
                 [this, call, held, done, context] {
                   Release(*held);
                   done(context, ToServiceStatus(CheckLive(call)));
                 });
    return {};
  });
  if (!started) Release(*admitted);
  return started;
}

template <typename Request>
Batch::SolveProblem RequestHandler::SolverOf(const Request& request, int64_t shared_bytes,
                                             const CallContext& call, BatchSink sink) {
  const auto shared = shared_bytes > 0 ? std::make_shared<SharedIslands>(shared_bytes) : nullptr;
  return [this, &request, shared, call, sink = std::move(sink)](int i, Dispatch dispatch) {
    v1::Outcome outcome;
    const double share = SolveInBatch(request, i, call, shared.get(), dispatch, &outcome);
    sink(i, std::move(outcome));
    return share;
  };
}

Batch::SolveProblem RequestHandler::SolverOf(const v1::DifferentiateBatchRequest& request,
                                             const CallContext& call,
                                             v1::DifferentiateBatchResponse* response) {
  return [this, &request, call, response](int i, Dispatch dispatch) {
    v1::DifferentiateOutcome outcome = DifferentiateInBatch(request, i, call, dispatch);
    response->mutable_outcomes(i)->Swap(&outcome);
    return 1.0;
  };
}

template <typename Request>
double RequestHandler::SolveInBatch(const Request& batch, int i, const CallContext& call,
                                    SharedIslands* shared, Dispatch dispatch,
                                    v1::Outcome* outcome) {
  std::unique_ptr<SolveJob> solve = TakeSolve();
  solve->Begin(&batch.problems(i), batch.options(), call, shared);
  return RunInBatch(std::move(solve), dispatch, outcome->mutable_solution(), outcome);
}

v1::DifferentiateOutcome RequestHandler::DifferentiateInBatch(
    const v1::DifferentiateBatchRequest& batch, int i, const CallContext& call, Dispatch dispatch) {
  std::unique_ptr<SolveJob> solve = TakeSolve();
  v1::DifferentiateOutcome outcome;
  v1::DifferentiateResponse* const derivatives = outcome.mutable_derivatives();
  solve->Begin(batch.requests(i), call, derivatives, &batch);
  RunInBatch(std::move(solve), dispatch, derivatives->mutable_solution(), &outcome);
  return outcome;
}

std::unique_ptr<SolveJob> RequestHandler::TakeSolve() {
  std::unique_ptr<SolveJob> solve = idle_solves_.Acquire();
  return solve != nullptr ? std::move(solve) : std::make_unique<SolveJob>();
}

// Returns the part of the work of the problem that was done for it.
template <typename Outcome>
double RequestHandler::RunInBatch(std::unique_ptr<SolveJob> solve, Dispatch dispatch,
                                  v1::ContactSolution* answer, Outcome* outcome) {
  solve->AddQueueTime(SecondsSince(solve->call().arrival));
  const ServiceStatus status =
      ToServiceStatus(CheckLive(solve->call()))
          .and_then([&] { return solve->Decode(config_); })
          .and_then([&] { return Run(solve.get(), ArenaFor(dispatch), answer); });
  if (!status) EncodeFailure(status.error(), outcome->mutable_failure());
  solve->Report(status, telemetry_);
  const double share = status ? solve->share_of_work() : 1;
  KeepOrFree(std::move(solve), &idle_solves_);
  return share;
}

}  // namespace sap
