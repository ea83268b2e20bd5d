// The service without its transport: admit, decode, solve, encode.
//
// The gRPC service and the client's embedded mode both call this and nothing else, so answers and
// errors are the same through either.
//
//   request -> admitted? -> decoded and checked -> solved inline, or on the arena -> response
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "sap/v1/solver_service.pb.h"
#include "server/free_list.h"
#include "server/server_config.h"
#include "server/service_error.h"
#include "solver/parallel.h"
#include "solver/solve.h"

namespace sap {

// What the transport knows about a call.
struct CallLimits {
  using Clock = StopToken::Clock;
  Clock::time_point arrival{Clock::now()};
  // After it nobody waits for the answer. The solver gets 95 % of the time up to it, so that the
  // answer still has time to travel.
  Clock::time_point deadline{Clock::time_point::max()};
  const std::atomic<bool>* cancelled{nullptr};  // must outlive the call
};

// Thread-safe: any number of calls at once.
class Engine {
 public:
  // Told once how a started call ended, on whichever thread ended it.
  using Done = void (*)(void* context, const ServiceStatus& status);

  explicit Engine(const ServerConfig& config);
  ~Engine();

  // Answers on the calling thread, helped by the arena.
  ServiceStatus Solve(const v1::SolveRequest& request, const CallLimits& limits,
                      v1::SolveResponse* response);

  // The same without ever waiting for the arena: small problems are solved before this returns,
  // large ones by a thread of the arena. Request and response must live until `done` is called.
  void Start(const v1::SolveRequest& request, const CallLimits& limits, v1::SolveResponse* response,
             Done done, void* context);

  v1::GetServerInfoResponse Info() const;

 private:
  struct Job;
  using SolverList = FreeList<Solver>;

  std::unique_ptr<Job> MakeJob(const v1::SolveRequest& request, const CallLimits& limits,
                               v1::SolveResponse* response);
  ServiceStatus Admit();
  ServiceStatus Decode(Job* job) const;
  bool IsSmall(const Job& job) const;
  ServiceStatus Run(Job* job, bool on_arena);
  ServiceStatus DecodeAndRun(Job* job);
  void Enqueue(std::unique_ptr<Job> job);
  void End(std::unique_ptr<Job> job, const ServiceStatus& status);

  const ServerConfig config_;
  std::atomic<int> active_calls_{0};
  TaskArena arena_;
  SolverList inline_solvers_;
  SolverList arena_solvers_;
  FreeList<Job> idle_jobs_;
};

}  // namespace sap
