#include "server/engine.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "server/build_info.h"
#include "server/solution_encoder.h"

namespace sap {
namespace {

using Clock = CallLimits::Clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

tl::unexpected<ServiceError> Exhausted(const std::string& what) {
  return tl::unexpected(ServiceError{ServiceCode::kResourceExhausted, what + "; retry later", ""});
}

const v1::ContactProblem* ProblemOf(const v1::SolveRequest& request) {
  return request.has_problem() ? &request.problem() : nullptr;
}

}  // namespace

// One call on its way. Reused, so that a problem like one seen before allocates nothing.
struct Engine::Job {
  Engine* engine{nullptr};
  ProblemSolve solve;
  v1::SolveResponse* response{nullptr};
  Done done{nullptr};
  void* context{nullptr};
  Clock::time_point queued;  // when it began to wait for a thread of the arena
};

Engine::Engine(const ServerConfig& config, RequestRecorder* recorder)
    : config_(config),
      recorder_(recorder),
      arena_(config.threads),
      idle_solvers_(config.threads + config.io_threads),
      idle_jobs_(config.threads + config.io_threads),
      idle_solves_(config.threads) {}

Engine::~Engine() = default;

ServiceStatus Engine::Solve(const v1::SolveRequest& request, const CallLimits& limits,
                            v1::SolveResponse* response) {
  if (ServiceStatus admitted = Admit(); !admitted) return admitted;
  std::unique_ptr<Job> job = MakeJob(request, limits, response);
  ServiceStatus status = DecodeAndRun(&job->solve, response->mutable_solution());
  End(std::move(job), status);
  return status;
}

void Engine::Start(const v1::SolveRequest& request, const CallLimits& limits,
                   v1::SolveResponse* response, Done done, void* context) {
  if (ServiceStatus admitted = Admit(); !admitted) return done(context, admitted);
  std::unique_ptr<Job> job = MakeJob(request, limits, response);
  job->done = done;
  job->context = context;
  ProblemSolve& solve = job->solve;
  if (solve.IsLongMessage(config_)) return Enqueue(std::move(job));
  if (ServiceStatus decoded = solve.Decode(config_); !decoded) return End(std::move(job), decoded);
  if (!solve.IsSmall(config_)) return Enqueue(std::move(job));
  const ServiceStatus status = Run(&solve, /*on_arena=*/false, response->mutable_solution());
  End(std::move(job), status);
}

ServiceStatus Engine::SolveBatch(const v1::SolveBatchRequest& request, const CallLimits& limits,
                                 v1::SolveBatchResponse* response) {
  for (int i = 0; i < request.problems_size(); ++i) response->add_outcomes();
  const auto sink = [response](int index, v1::Outcome outcome) {
    response->mutable_outcomes(index)->Swap(&outcome);
  };
  return RunBatch(request.problems(), request.options(), limits, sink);
}

void Engine::StartBatch(const v1::SolveBatchRequest& request, const CallLimits& limits,
                        v1::SolveBatchResponse* response, Done done, void* context) {
  for (int i = 0; i < request.problems_size(); ++i) response->add_outcomes();
  const auto sink = [response](int index, v1::Outcome outcome) {
    response->mutable_outcomes(index)->Swap(&outcome);
  };
  StartBatch(request.problems(), request.options(), limits, sink, done, context);
}

ServiceStatus Engine::StreamBatch(const v1::StreamBatchRequest& request, const CallLimits& limits,
                                  const BatchSink& sink) {
  return RunBatch(request.problems(), request.options(), limits, sink);
}

void Engine::StartStreamBatch(const v1::StreamBatchRequest& request, const CallLimits& limits,
                              BatchSink sink, Done done, void* context) {
  StartBatch(request.problems(), request.options(), limits, std::move(sink), done, context);
}

tl::expected<std::unique_ptr<Session>, ServiceError> Engine::NewSession() {
  if (num_sessions_.fetch_add(1, std::memory_order_relaxed) < config_.max_sessions) {
    return std::make_unique<Session>(config_, &arena_, recorder_, &num_sessions_);
  }
  num_sessions_.fetch_sub(1, std::memory_order_relaxed);
  return Exhausted("the server already has its limit of " + std::to_string(config_.max_sessions) +
                   " sessions");
}

v1::GetServerInfoResponse Engine::Info() const {
  v1::GetServerInfoResponse info;
  info.set_version(SAP_VERSION);
  v1::ServerLimits* limits = info.mutable_limits();
  limits->set_max_message_bytes(config_.max_message_bytes);
  limits->set_max_trees(config_.problem.max_trees);
  limits->set_max_tree_dofs(config_.problem.max_tree_dofs);
  limits->set_max_contacts(config_.problem.max_contacts);
  limits->set_max_iterations(config_.max_iterations);
  limits->set_max_concurrent_calls(config_.max_concurrent_calls);
  limits->set_max_batch_problems(config_.max_batch_problems);
  limits->set_max_sessions(config_.max_sessions);
  limits->set_max_steps_in_flight(config_.max_steps_in_flight);
  info.set_processors(std::thread::hardware_concurrency());
  info.set_solver_threads(config_.threads);
  info.set_instruction_set(InstructionSet());
  return info;
}

// On success the call counts until Leave.
ServiceStatus Engine::Admit() {
  if (active_calls_.fetch_add(1, std::memory_order_relaxed) < config_.max_concurrent_calls) {
    return {};
  }
  Leave();
  return Exhausted("the server is already serving its limit of " +
                   std::to_string(config_.max_concurrent_calls) + " concurrent calls");
}

void Engine::Leave() { active_calls_.fetch_sub(1, std::memory_order_relaxed); }

std::unique_ptr<Engine::Job> Engine::MakeJob(const v1::SolveRequest& request,
                                             const CallLimits& limits,
                                             v1::SolveResponse* response) {
  std::unique_ptr<Job> job = idle_jobs_.Take();
  if (job == nullptr) job = std::make_unique<Job>();
  job->engine = this;
  job->solve.Begin(ProblemOf(request), request.options(), limits);
  job->response = response;
  job->done = nullptr;
  job->context = nullptr;
  return job;
}

ServiceStatus Engine::DecodeAndRun(ProblemSolve* solve, v1::ContactSolution* answer) {
  if (ServiceStatus wanted = CheckWanted(solve->limits()); !wanted) return wanted;
  if (!solve->decoded()) {
    if (ServiceStatus decoded = solve->Decode(config_); !decoded) return decoded;
  }
  return Run(solve, /*on_arena=*/!solve->IsSmall(config_), answer);
}

ServiceStatus Engine::Run(ProblemSolve* solve, bool on_arena, v1::ContactSolution* answer) {
  return Guard([&] {
    std::unique_ptr<Solver> solver = idle_solvers_.Take();
    if (solver == nullptr) solver = std::make_unique<Solver>(nullptr);
    solver->UseArena(on_arena ? &arena_ : nullptr);
    ServiceStatus status = solve->Solve(solver.get(), answer);
    idle_solvers_.Give(std::move(solver));
    return status;
  });
}

void Engine::Enqueue(std::unique_ptr<Job> job) {
  job->queued = Clock::now();
  arena_.Enqueue(
      [](void* context) {
        std::unique_ptr<Job> job(static_cast<Job*>(context));
        job->solve.AddQueueTime(SecondsSince(job->queued));
        Engine* engine = job->engine;
        const ServiceStatus status =
            engine->DecodeAndRun(&job->solve, job->response->mutable_solution());
        engine->End(std::move(job), status);
      },
      job.release());
}

// The job is given back first: `done` may be the last thing that keeps the engine alive.
void Engine::End(std::unique_ptr<Job> job, const ServiceStatus& status) {
  job->solve.Record(status, recorder_);
  if (!status) job->response->clear_solution();
  const Done done = job->done;
  void* const context = job->context;
  idle_jobs_.Give(std::move(job));
  Leave();
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
                               const CallLimits& limits, const BatchSink& sink) {
  if (ServiceStatus admitted = Admit(); !admitted) return admitted;
  ServiceStatus status = CheckBatch(problems.size(), options);
  if (status) {
    Batch::Run(problems, &arena_,
               [&](int i) { sink(i, SolveInBatch(problems[i], options, limits)); });
    status = CheckWanted(limits);
  }
  Leave();
  return status;
}

void Engine::StartBatch(const Batch::Problems& problems, const v1::SolveOptions& options,
                        const CallLimits& limits, BatchSink sink, Done done, void* context) {
  if (ServiceStatus admitted = Admit(); !admitted) return done(context, admitted);
  if (const ServiceStatus checked = CheckBatch(problems.size(), options); !checked) {
    Leave();
    return done(context, checked);
  }
  Batch::Start(
      problems, &arena_,
      [this, &problems, &options, limits, sink = std::move(sink)](int i) {
        sink(i, SolveInBatch(problems[i], options, limits));
      },
      [this, limits, done, context] {
        Leave();
        done(context, CheckWanted(limits));
      });
}

v1::Outcome Engine::SolveInBatch(const v1::ContactProblem& problem, const v1::SolveOptions& options,
                                 const CallLimits& limits) {
  std::unique_ptr<ProblemSolve> solve = idle_solves_.Take();
  if (solve == nullptr) solve = std::make_unique<ProblemSolve>();
  solve->Begin(&problem, options, limits);
  solve->AddQueueTime(SecondsSince(limits.arrival));
  v1::Outcome outcome;
  const ServiceStatus status = DecodeAndRun(solve.get(), outcome.mutable_solution());
  if (!status) EncodeFailure(status.error(), outcome.mutable_failure());
  solve->Record(status, recorder_);
  idle_solves_.Give(std::move(solve));
  return outcome;
}

}  // namespace sap
