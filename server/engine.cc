#include "server/engine.h"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "server/problem_decoder.h"
#include "server/solution_encoder.h"

namespace sap {
namespace {

using Clock = StopToken::Clock;

// Checking and copying a problem, per byte of its message: a message so large that this alone takes
// longer than an inline solve may is decoded on the arena.
constexpr double kDecodeTimePerByte_s = 1e-9;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const char* InstructionSet() {
#if defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
  return "x86-64-v3";
#elif defined(__x86_64__)
  return "x86-64";
#else
  return "portable";
#endif
}

// When the solver has to stop: the time budget or 95 % of the call's deadline, whichever is first.
Clock::time_point StopTime(const CallLimits& limits, const SolveSettings& settings) {
  Clock::time_point stop = Clock::time_point::max();
  if (limits.deadline != Clock::time_point::max()) {
    stop = limits.arrival + (limits.deadline - limits.arrival) / 20 * 19;
  }
  if (settings.time_budget) stop = std::min(stop, limits.arrival + *settings.time_budget);
  return stop;
}

// An error if nobody waits for the answer any more.
ServiceStatus CheckWanted(const CallLimits& limits) {
  if (limits.cancelled != nullptr && limits.cancelled->load(std::memory_order_relaxed)) {
    return tl::unexpected(ServiceError{ServiceCode::kCancelled, "cancelled by the client", ""});
  }
  if (Clock::now() >= limits.deadline) {
    return tl::unexpected(
        ServiceError{ServiceCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return {};
}

// Runs a step of a call. Only the standard library throws, and only when memory runs out; that must
// not take the other calls with it.
template <typename Step>
ServiceStatus Guard(const Step& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(
        ServiceError{ServiceCode::kResourceExhausted, "not enough memory for this problem", ""});
  } catch (const std::exception& error) {
    return tl::unexpected(ServiceError{ServiceCode::kInternal, error.what(), ""});
  }
}

}  // namespace

// One call on its way. Reused, so that a problem like one seen before allocates nothing.
struct Engine::Job {
  Engine* engine{nullptr};
  const v1::SolveRequest* request{nullptr};
  v1::SolveResponse* response{nullptr};
  CallLimits limits;
  Done done{nullptr};
  void* context{nullptr};

  bool decoded{false};
  ContactProblem problem;
  SolveSettings settings;
  ContactSolution solution;
  Clock::time_point queued;  // when it began to wait for a thread of the arena
  double queue_s{0};
  double decode_s{0};
};

Engine::Engine(const ServerConfig& config)
    : config_(config),
      arena_(config.threads),
      inline_solvers_(config.io_threads),
      arena_solvers_(config.threads),
      idle_jobs_(config.threads + config.io_threads) {}

Engine::~Engine() = default;

ServiceStatus Engine::Solve(const v1::SolveRequest& request, const CallLimits& limits,
                            v1::SolveResponse* response) {
  if (ServiceStatus admitted = Admit(); !admitted) return admitted;
  std::unique_ptr<Job> job = MakeJob(request, limits, response);
  ServiceStatus status = DecodeAndRun(job.get());
  End(std::move(job), status);
  return status;
}

void Engine::Start(const v1::SolveRequest& request, const CallLimits& limits,
                   v1::SolveResponse* response, Done done, void* context) {
  if (ServiceStatus admitted = Admit(); !admitted) return done(context, admitted);
  std::unique_ptr<Job> job = MakeJob(request, limits, response);
  job->done = done;
  job->context = context;
  const double inline_below_s = config_.inline_below_us * 1e-6;
  if (static_cast<double>(request.ByteSizeLong()) * kDecodeTimePerByte_s >= inline_below_s) {
    return Enqueue(std::move(job));
  }
  if (ServiceStatus decoded = Decode(job.get()); !decoded) return End(std::move(job), decoded);
  if (!IsSmall(*job)) return Enqueue(std::move(job));
  const ServiceStatus status = Run(job.get(), /*on_arena=*/false);
  End(std::move(job), status);
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
  info.set_processors(std::thread::hardware_concurrency());
  info.set_solver_threads(config_.threads);
  info.set_instruction_set(InstructionSet());
  return info;
}

std::unique_ptr<Engine::Job> Engine::MakeJob(const v1::SolveRequest& request,
                                             const CallLimits& limits,
                                             v1::SolveResponse* response) {
  std::unique_ptr<Job> job = idle_jobs_.Take();
  if (job == nullptr) job = std::make_unique<Job>();
  job->engine = this;
  job->request = &request;
  job->response = response;
  job->limits = limits;
  job->done = nullptr;
  job->context = nullptr;
  job->decoded = false;
  job->queue_s = 0;
  return job;
}

// On success the call counts until End.
ServiceStatus Engine::Admit() {
  if (active_calls_.fetch_add(1, std::memory_order_relaxed) < config_.max_concurrent_calls) {
    return {};
  }
  active_calls_.fetch_sub(1, std::memory_order_relaxed);
  return tl::unexpected(ServiceError{ServiceCode::kResourceExhausted,
                                     "the server is already serving its limit of " +
                                         std::to_string(config_.max_concurrent_calls) +
                                         " concurrent calls; retry later",
                                     ""});
}

ServiceStatus Engine::Decode(Job* job) const {
  return Guard([&]() -> ServiceStatus {
    if (!job->request->has_problem()) {
      return RefuseField("problem", "is missing; every request needs one");
    }
    auto settings = DecodeOptions(job->request->options(), config_.max_iterations);
    if (!settings) return tl::unexpected(settings.error());
    job->settings = *settings;
    const auto view = DecodeProblem(job->request->problem());
    if (!view) return tl::unexpected(view.error());
    if (const auto checked = job->problem.Reset(*view, config_.problem); !checked) {
      const ProblemError& error = checked.error();
      std::string field = error.field;
      if (error.index >= 0) field.append("[").append(std::to_string(error.index)).append("]");
      return RefuseField(field, error.reason);
    }
    job->decoded = true;
    job->decode_s = SecondsSince(job->limits.arrival) - job->queue_s;
    return {};
  });
}

bool Engine::IsSmall(const Job& job) const {
  return PredictedSolveTime(job.problem) < config_.inline_below_us * 1e-6;
}

ServiceStatus Engine::DecodeAndRun(Job* job) {
  if (ServiceStatus wanted = CheckWanted(job->limits); !wanted) return wanted;
  if (!job->decoded) {
    if (ServiceStatus decoded = Decode(job); !decoded) return decoded;
  }
  return Run(job, /*on_arena=*/!IsSmall(*job));
}

ServiceStatus Engine::Run(Job* job, bool on_arena) {
  return Guard([&]() -> ServiceStatus {
    SolverList& solvers = on_arena ? arena_solvers_ : inline_solvers_;
    std::unique_ptr<Solver> solver = solvers.Take();
    if (solver == nullptr) solver = std::make_unique<Solver>(on_arena ? &arena_ : nullptr);
    const StopToken stop(job->limits.cancelled, StopTime(job->limits, job->settings));
    solver->Solve(job->problem, job->settings.solver, stop, &job->solution);
    solvers.Give(std::move(solver));
    if (ServiceStatus wanted = CheckWanted(job->limits); !wanted) return wanted;

    const Clock::time_point encoding = Clock::now();
    v1::ContactSolution* message = job->response->mutable_solution();
    EncodeSolution(job->solution, job->settings.response_mask, message);
    if (message->has_timings()) {
      message->mutable_timings()->set_decode_s(job->decode_s);
      message->mutable_timings()->set_queue_s(job->queue_s);
      message->mutable_timings()->set_encode_s(SecondsSince(encoding));
    }
    return {};
  });
}

void Engine::Enqueue(std::unique_ptr<Job> job) {
  job->queued = Clock::now();
  arena_.Enqueue(
      [](void* context) {
        std::unique_ptr<Job> job(static_cast<Job*>(context));
        job->queue_s = SecondsSince(job->queued);
        Engine* engine = job->engine;
        const ServiceStatus status = engine->DecodeAndRun(job.get());
        engine->End(std::move(job), status);
      },
      job.release());
}

// The job is given back first: `done` may be the last thing that keeps the engine alive.
void Engine::End(std::unique_ptr<Job> job, const ServiceStatus& status) {
  const Done done = job->done;
  void* const context = job->context;
  idle_jobs_.Give(std::move(job));
  active_calls_.fetch_sub(1, std::memory_order_relaxed);
  if (done != nullptr) done(context, status);
}

}  // namespace sap
