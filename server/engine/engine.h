// The service without its transport: admit, decode, solve, encode.
//
// The gRPC service and the client's embedded mode both call this and nothing else, so answers and
// errors are the same through either.
//
//   request -> admitted? -> decoded and checked -> solved inline, or on the arena -> response
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "sap/v1/solver_service.pb.h"
#include "server/engine/batch.h"
#include "server/engine/free_list.h"
#include "server/engine/metrics.h"
#include "server/engine/request_recorder.h"
#include "server/engine/session.h"
#include "server/engine/solve_job.h"
#include "server/scheduling/admission.h"
#include "server/scheduling/call_context.h"
#include "server/scheduling/idle_spinners.h"
#include "server/scheduling/work_queue.h"
#include "server/server_config.h"
#include "server/service_error.h"
#include "solver/parallel/task_arena.h"
#include "solver/solve.h"

namespace sap {

// Thread-safe: any number of calls at once.
class Engine {
 public:
  // Told once how a started call ended, on whichever thread ended it.
  using Done = void (*)(void* context, const ServiceStatus& status);
  // Told of each problem of a batch as soon as it is answered, by several threads at once.
  using BatchSink = std::function<void(int index, v1::Outcome outcome)>;

  // Recorder and metrics may be null, and must outlive the engine.
  explicit Engine(const ServerConfig& config, RequestRecorder* recorder = nullptr,
                  Metrics* metrics = nullptr);
  ~Engine();

  // Before the message of a call is read: an error if there is no room for it. Otherwise it is
  // reckoned with until Arrived.
  using Expected = WorkQueue::Expected;
  tl::expected<Expected, ServiceError> Expect(ClientAccount* account, Priority priority);
  void Arrived(ClientAccount* account, const Expected& expected) {
    queue_.Arrived(account, expected);
  }

  // Answers on the calling thread, helped by the arena.
  ServiceStatus Solve(const v1::SolveRequest& request, const CallContext& limits,
                      v1::SolveResponse* response);

  // The same without ever waiting for the arena: small problems are solved before this returns,
  // large ones by a thread of the arena. Request and response must live until `done` is called.
  void Start(const v1::SolveRequest& request, const CallContext& limits,
             v1::SolveResponse* response, Done done, void* context);

  // Independent problems, solved concurrently; each has an outcome of its own. Likewise on the
  // calling thread and the arena, or in turn with other calls.
  ServiceStatus SolveBatch(const v1::SolveBatchRequest& request, const CallContext& limits,
                           v1::SolveBatchResponse* response);
  void StartBatch(const v1::SolveBatchRequest& request, const CallContext& limits,
                  v1::SolveBatchResponse* response, Done done, void* context);
  ServiceStatus StreamBatch(const v1::StreamBatchRequest& request, const CallContext& limits,
                            const BatchSink& sink);
  void StartStreamBatch(const v1::StreamBatchRequest& request, const CallContext& limits,
                        BatchSink sink, Done done, void* context);

  // A session, not open yet. The engine must outlive it. RESOURCE_EXHAUSTED beyond the limit.
  tl::expected<std::unique_ptr<Session>, ServiceError> NewSession();

  // Sessions that are there.
  int num_sessions() const { return num_sessions_.load(std::memory_order_relaxed); }

  v1::GetServerInfoResponse Info() const;

  Admission& admission() { return admission_; }
  const WorkQueue& queue() const { return queue_; }

  const ServerConfig& config() const { return config_; }

 private:
  struct Job;

  // What a call has been let in with, until it leaves.
  struct Entry {
    ClientAccount* account;
    Demand demand;
  };

  tl::expected<Entry, ServiceError> Enter(const CallContext& limits, const Demand& demand);
  void Leave(const Entry& entry) { admission_.Leave(entry.account, entry.demand); }

  std::unique_ptr<Job> MakeJob(const v1::SolveRequest& request, const CallContext& limits,
                               const Entry& entry, v1::SolveResponse* response);
  ServiceStatus Run(SolveJob* solve, TaskArena* arena, v1::ContactSolution* answer);
  ServiceStatus DecodeAndRun(SolveJob* solve, TaskArena* arena, v1::ContactSolution* answer);
  TaskArena* ArenaOf(Turn turn) { return turn == Turn::kOnArena ? &arena_ : nullptr; }
  void Enqueue(std::unique_ptr<Job> job);
  void End(std::unique_ptr<Job> job, const ServiceStatus& status);

  ServiceStatus CheckBatch(int size, const v1::SolveOptions& options) const;
  ServiceStatus RunBatch(const Batch::Problems& problems, const v1::SolveOptions& options,
                         const CallContext& limits, const BatchSink& sink);
  void StartBatch(const Batch::Problems& problems, const v1::SolveOptions& options,
                  const CallContext& limits, BatchSink sink, Done done, void* context);
  v1::Outcome SolveInBatch(const v1::ContactProblem& problem, const v1::SolveOptions& options,
                           const CallContext& limits, Turn turn);

  const ServerConfig config_;
  const Observers observers_;
  std::atomic<int> num_sessions_{0};
  Admission admission_;
  const std::shared_ptr<ClientAccount> this_process_;
  TaskArena arena_;
  WorkQueue queue_;
  IdleSpinners idle_spinners_;
  FreeList<Solver> idle_solvers_;
  FreeList<Job> idle_jobs_;
  FreeList<SolveJob> idle_solves_;
};

}  // namespace sap
