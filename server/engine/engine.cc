#include "server/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "server/build_info.h"
#include "server/engine/solution_encoder.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

// For this process itself, whose solves delay no client of a server.
constexpr double kUnlimited_s = 1e9;

Demand DemandOf(const v1::SolveRequest& request) {
  return {static_cast<int64_t>(request.ByteSizeLong()), PredictedWork(request.problem())};
}

Demand DemandOf(const Batch::Problems& problems) {
  Demand demand;
  for (const v1::ContactProblem& problem : problems) {
    demand.bytes += static_cast<int64_t>(problem.ByteSizeLong());
    demand.work_s += PredictedWork(problem);
  }
  return demand;
}

const v1::ContactProblem* ProblemOf(const v1::SolveRequest& request) {
  return request.has_problem() ? &request.problem() : nullptr;
}

}  // namespace

// A unary call in progress. Pooled, so that a problem with a known pattern allocates no memory.
struct Engine::Job {
  Engine* engine{nullptr};
  SolveJob solve;
  v1::SolveResponse* response{nullptr};
  Done done{nullptr};
  void* context{nullptr};
  Admitted admitted{};
  QueuedTask task;
};

Engine::Engine(const ServerConfig& config, RequestRecorder* recorder, Metrics* metrics)
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

Engine::~Engine() = default;

tl::expected<Engine::Reservation, ServiceError> Engine::ReserveCall(ClientAccount* account,
                                                                    Priority priority) {
  tl::expected<Reservation, ServiceError> reservation =
      admission_.CheckRate(account)
          .and_then([&] { return admission_.CheckCalls(account); })
          .and_then([&] { return queue_.Reserve(account, priority); });
  if (!reservation) telemetry_.CountRefusal(reservation.error());
  return reservation;
}

ServiceStatus Engine::CheckRate(ClientAccount* account) {
  ServiceStatus checked = admission_.CheckRate(account);
  if (!checked) telemetry_.CountRefusal(checked.error());
  return checked;
}

ServiceStatus Engine::Solve(const v1::SolveRequest& request, const CallContext& call,
                            v1::SolveResponse* response) {
  const auto admitted = Admit(call, DemandOf(request));
  if (!admitted) return tl::unexpected(admitted.error());
  std::unique_ptr<Job> job = MakeJob(request, call, *admitted, response);
  ServiceStatus status = DecodeAndRun(&job->solve, &arena_, response->mutable_solution());
  End(std::move(job), status);
  return status;
}

void Engine::Start(const v1::SolveRequest& request, const CallContext& call,
                   v1::SolveResponse* response, Done done, void* context) {
  const auto admitted = Admit(call, DemandOf(request));
  if (!admitted) return done(context, tl::unexpected(admitted.error()));
  std::unique_ptr<Job> job = MakeJob(request, call, *admitted, response);
  job->done = done;
  job->context = context;
  SolveJob& solve = job->solve;
  if (solve.IsLongMessage(config_)) return Enqueue(std::move(job));
  const Clock::time_point begin = Clock::now();
  if (ServiceStatus decoded = solve.Decode(config_); !decoded) return End(std::move(job), decoded);
  if (!solve.IsSmall(config_) || !queue_.MayRunInline(*admitted->account)) {
    return Enqueue(std::move(job));
  }
  const ServiceStatus status = Run(&solve, /*arena=*/nullptr, response->mutable_solution());
  queue_.ChargeInline(admitted->account, Clock::now() - begin);
  End(std::move(job), status);
}

ServiceStatus Engine::SolveBatch(const v1::SolveBatchRequest& request, const CallContext& call,
                                 v1::SolveBatchResponse* response) {
  for (int i = 0; i < request.problems_size(); ++i) response->add_outcomes();
  const auto sink = [response](int index, v1::Outcome outcome) {
    response->mutable_outcomes(index)->Swap(&outcome);
  };
  return RunBatch(request.problems(), request.options(), call, sink);
}

void Engine::StartBatch(const v1::SolveBatchRequest& request, const CallContext& call,
                        v1::SolveBatchResponse* response, Done done, void* context) {
  for (int i = 0; i < request.problems_size(); ++i) response->add_outcomes();
  const auto sink = [response](int index, v1::Outcome outcome) {
    response->mutable_outcomes(index)->Swap(&outcome);
  };
  StartBatch(request.problems(), request.options(), call, sink, done, context);
}

ServiceStatus Engine::StreamBatch(const v1::StreamBatchRequest& request, const CallContext& call,
                                  const BatchSink& sink) {
  return RunBatch(request.problems(), request.options(), call, sink);
}

void Engine::StartStreamBatch(const v1::StreamBatchRequest& request, const CallContext& call,
                              BatchSink sink, Done done, void* context) {
  StartBatch(request.problems(), request.options(), call, std::move(sink), done, context);
}

tl::expected<std::unique_ptr<Session>, ServiceError> Engine::NewSession(ClientAccount* account) {
  if (account == nullptr) account = this_process_.get();
  if (const ServiceStatus admitted = admission_.AdmitSession(account); !admitted) {
    telemetry_.CountRefusal(admitted.error());
    return tl::unexpected(admitted.error());
  }
  return std::make_unique<Session>(SessionResources{config_, &arena_, &queue_, &idle_spinners_,
                                                    &admission_, account, telemetry_});
}

v1::GetServerInfoResponse Engine::Info(const ClientAccount* account) const {
  const Entitlements& client =
      account != nullptr ? account->entitlements() : this_process_->entitlements();
  v1::GetServerInfoResponse info;
  info.set_version(SAP_VERSION);
  v1::ServerLimits* limits = info.mutable_limits();
  limits->set_max_message_bytes(config_.max_message_bytes);
  limits->set_max_trees(config_.problem.max_trees);
  limits->set_max_tree_dofs(config_.problem.max_tree_dofs);
  limits->set_max_contacts(config_.problem.max_contacts);
  limits->set_max_iterations(config_.max_iterations);
  limits->set_max_solve_memory_bytes(static_cast<uint64_t>(config_.max_solve_memory_mib) << 20);
  limits->set_max_concurrent_calls(config_.admission.all.max_calls);
  limits->set_max_batch_problems(config_.max_batch_problems);
  limits->set_max_sessions(config_.admission.all.max_sessions);
  limits->set_max_client_sessions(client.max_sessions);
  limits->set_max_steps_in_flight(config_.session.max_steps_in_flight);
  limits->set_max_client_calls(client.max_calls);
  limits->set_max_held_bytes(config_.admission.all.max_bytes);
  limits->set_max_client_bytes(client.max_bytes);
  limits->set_queue_timeout_s(config_.queue_timeout_s);
  limits->set_session_idle_s(config_.session.idle_s);
  limits->set_max_rows(config_.problem.max_rows);
  limits->set_max_row_entries(config_.problem.max_row_entries);
  limits->set_max_row_pairs(config_.problem.max_row_pairs);
  limits->set_max_solve_s(client.max_solve_s);
  limits->set_max_client_calls_per_s(client.max_calls_per_s);
  limits->set_high_priority(client.high_priority);
  limits->set_read_timeout_s(config_.read_timeout_s);
  info.set_processors(std::thread::hardware_concurrency());
  info.set_solver_threads(config_.threads);
  info.set_instruction_set(InstructionSet());
  return info;
}

// On success the call counts against the limits until Release.
tl::expected<Engine::Admitted, ServiceError> Engine::Admit(const CallContext& call,
                                                           const Demand& demand) {
  ClientAccount* account = call.account != nullptr ? call.account : this_process_.get();
  if (ServiceStatus checked = admission_.Admit(account, demand); !checked) {
    telemetry_.CountRefusal(checked.error());
    return tl::unexpected(checked.error());
  }
  return Admitted{account, demand};
}

std::unique_ptr<Engine::Job> Engine::MakeJob(const v1::SolveRequest& request,
                                             const CallContext& call, const Admitted& admitted,
                                             v1::SolveResponse* response) {
  std::unique_ptr<Job> job = idle_jobs_.Take();
  if (job == nullptr) job = std::make_unique<Job>();
  job->engine = this;
  job->solve.Begin(ProblemOf(request), request.options(), call);
  job->response = response;
  job->done = nullptr;
  job->context = nullptr;
  job->admitted = admitted;
  return job;
}

ServiceStatus Engine::DecodeAndRun(SolveJob* solve, TaskArena* arena, v1::ContactSolution* answer) {
  if (ServiceStatus live = CheckLive(solve->call()); !live) return live;
  if (!solve->decoded()) {
    if (ServiceStatus decoded = solve->Decode(config_); !decoded) return decoded;
  }
  return Run(solve, solve->IsSmall(config_) ? nullptr : arena, answer);
}

ServiceStatus Engine::Run(SolveJob* solve, TaskArena* arena, v1::ContactSolution* answer) {
  return CatchExceptions([&] {
    std::unique_ptr<Solver> solver = idle_solvers_.Take();
    if (solver == nullptr) solver = std::make_unique<Solver>(nullptr);
    solver->UseArena(arena);
    ServiceStatus status = solve->Solve(solver.get(), answer);
    idle_solvers_.Give(std::move(solver));
    return status;
  });
}

void Engine::Enqueue(std::unique_ptr<Job> job) {
  QueuedTask& task = job->task;
  task.run = [](void* context, Dispatch dispatch) {
    std::unique_ptr<Job> job(static_cast<Job*>(context));
    job->solve.AddQueueTime(SecondsSince(job->task.queued));
    Engine* engine = job->engine;
    ServiceStatus status = tl::unexpected(engine->queue_.Expired());
    if (dispatch != Dispatch::kExpired) {
      status = engine->DecodeAndRun(&job->solve, engine->ArenaFor(dispatch),
                                    job->response->mutable_solution());
    }
    engine->End(std::move(job), status);
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

// Returns the job to the pool before `done`, which may release the last reference to the engine.
void Engine::End(std::unique_ptr<Job> job, const ServiceStatus& status) {
  job->solve.Report(status, telemetry_);
  if (!status) job->response->clear_solution();
  const Done done = job->done;
  void* const context = job->context;
  Release(job->admitted);
  idle_jobs_.Give(std::move(job));
  if (done != nullptr) done(context, status);
}

ServiceStatus Engine::CheckBatch(int size, const v1::SolveOptions& options) const {
  if (size > config_.max_batch_problems) {
    return RefuseField("problems", "has " + std::to_string(size) + " values; at most " +
                                       std::to_string(config_.max_batch_problems) +
                                       " are accepted in a batch");
  }
  const auto settings = DecodeOptions(options, config_.max_iterations);
  if (!settings) return tl::unexpected(settings.error());
  return {};
}

ServiceStatus Engine::RunBatch(const Batch::Problems& problems, const v1::SolveOptions& options,
                               const CallContext& call, const BatchSink& sink) {
  const auto admitted = Admit(call, DemandOf(problems));
  if (!admitted) return tl::unexpected(admitted.error());
  ServiceStatus status = CheckBatch(problems.size(), options);
  if (status) {
    Batch::Run(problems, &arena_, [&](int i, Dispatch dispatch) {
      sink(i, SolveInBatch(problems[i], options, call, dispatch));
    });
    status = CheckLive(call);
  }
  Release(*admitted);
  return status;
}

void Engine::StartBatch(const Batch::Problems& problems, const v1::SolveOptions& options,
                        const CallContext& call, BatchSink sink, Done done, void* context) {
  const auto admitted = Admit(call, DemandOf(problems));
  if (!admitted) return done(context, tl::unexpected(admitted.error()));
  const Batch::QueueTarget target{&queue_, config_.threads, admitted->account, PriorityOf(options)};
  ServiceStatus status = CheckBatch(problems.size(), options);
  if (status) status = queue_.CheckWait(*target.account, target.priority);
  if (!status) {
    telemetry_.CountRefusal(status.error());
    Release(*admitted);
    return done(context, status);
  }
  Batch::Start(
      problems, target,
      [this, &problems, &options, call, sink = std::move(sink)](int i, Dispatch dispatch) {
        sink(i, SolveInBatch(problems[i], options, call, dispatch));
      },
      [this, call, admitted = *admitted, done, context] {
        Release(admitted);
        done(context, CheckLive(call));
      });
}

v1::Outcome Engine::SolveInBatch(const v1::ContactProblem& problem, const v1::SolveOptions& options,
                                 const CallContext& call, Dispatch dispatch) {
  std::unique_ptr<SolveJob> solve = idle_solves_.Take();
  if (solve == nullptr) solve = std::make_unique<SolveJob>();
  solve->Begin(&problem, options, call);
  solve->AddQueueTime(SecondsSince(call.arrival));
  v1::Outcome outcome;
  const ServiceStatus status =
      DecodeAndRun(solve.get(), ArenaFor(dispatch), outcome.mutable_solution());
  if (!status) EncodeFailure(status.error(), outcome.mutable_failure());
  solve->Report(status, telemetry_);
  idle_solves_.Give(std::move(solve));
  return outcome;
}

}  // namespace sap
