// The service without its transport: admit, decode, solve, encode.
//
//   request -> admitted -> decoded and validated -> solved inline or on the arena -> response
//
// No call blocks: small problems are solved before it returns, others on threads of the arena, and
// `done` is called when the answer is complete. Requests and responses must live until then.
#pragma once

#include <functional>
#include <memory>

#include "sap/v1/solver_service.pb.h"
#include "server/scheduling/admission.h"
#include "server/scheduling/call_context.h"
#include "server/scheduling/fair_queue.h"
#include "server/server_config.h"
#include "server/service/batch.h"
#include "server/service/heap_trimmer.h"
#include "server/service/memory_guard.h"
#include "server/service/metrics.h"
#include "server/service/request_recorder.h"
#include "server/service/session.h"
#include "server/service/solve_job.h"
#include "server/service_error.h"
#include "solver/engine/object_pool.h"
#include "solver/parallel/idle_spinners.h"
#include "solver/parallel/task_arena.h"
#include "solver/solve.h"

namespace sap {

// Thread-safe.
class RequestHandler {
 public:
  // Completion callback of a started call. Called exactly once, on any thread.
  using Done = void (*)(void* context, const ServiceStatus& status);
  // Receives each outcome of a batch as soon as it is available. Called concurrently.
  using BatchSink = std::function<void(int index, v1::Outcome outcome)>;

  // Recorder and metrics may be null; otherwise they must outlive the handler.
  explicit RequestHandler(const ServerConfig& config, RequestRecorder* recorder = nullptr,
                          Metrics* metrics = nullptr);
  ~RequestHandler();

  // Admission check before the message of a call is read: RESOURCE_EXHAUSTED if a limit on calls or
  // on the queue wait is reached. Otherwise the call's expected work counts in predicted waits
  // until ReleaseReservation.
  using Reservation = FairQueue::Reservation;
  tl::expected<Reservation, ServiceError> ReserveCall(ClientAccount* account, Priority priority);
  void ReleaseReservation(ClientAccount* account, const Reservation& reservation) {
    queue_.ReleaseReservation(account, reservation);
  }

  // Counts a stream of steps that begins as ReserveCall counts a call: RESOURCE_EXHAUSTED if the
  // client exceeds its rate.
  ServiceStatus CheckRate(ClientAccount* account);
  // Counts a rejection by the transport in the metrics.
  void CountRefusal(const ServiceError& error) const { telemetry_.CountRefusal(error); }

  void Start(const v1::SolveRequest& request, const CallContext& call, v1::SolveResponse* response,
             Done done, void* context);

  // Independent problems, solved concurrently, each with its own outcome.
  void StartBatch(const v1::SolveBatchRequest& request, const CallContext& call,
                  v1::SolveBatchResponse* response, Done done, void* context);
  void StartStreamBatch(const v1::StreamBatchRequest& request, const CallContext& call,
                        BatchSink sink, Done done, void* context);

  // The solution of one problem with its derivatives, and those of independent problems, each with
  // its own outcome.
  void StartDifferentiate(const v1::DifferentiateRequest& request, const CallContext& call,
                          v1::DifferentiateResponse* response, Done done, void* context);
  void StartDifferentiateBatch(const v1::DifferentiateBatchRequest& request,
                               const CallContext& call, v1::DifferentiateBatchResponse* response,
                               Done done, void* context);

  // A session, not yet opened, of the client, or of this process; handler and account must outlive
  // it. RESOURCE_EXHAUSTED at a limit of sessions.
  tl::expected<std::unique_ptr<Session>, ServiceError> NewSession(ClientAccount* account = nullptr);

  // Number of existing sessions.
  int num_sessions() const { return admission_.sessions(); }

  // With the limits of this client; null: of this process.
  v1::GetServerInfoResponse Info(const ClientAccount* account = nullptr) const;

  // Periodic work, on one thread: returns freed memory to the system, and frees what is kept and
  // refuses new calls where the memory of the process runs short.
  using Clock = CallContext::Clock;
  MemoryGuard::Change Sweep(const std::function<ProcessMemory()>& read_memory,
                            Clock::time_point now = Clock::now());

  // Memory of others that serve calls in this process or for it. Counts are as of now.
  struct OtherMemory {
    std::function<int64_t()> kept_bytes = [] { return int64_t{0}; };   // in this process
    std::function<int64_t()> child_bytes = [] { return int64_t{0}; };  // resident, of its children
    std::function<void()> free_caches = [] {};
  };
  // Before calls begin, and for their time.
  void Watch(OtherMemory other) { other_memory_ = std::move(other); }

  // Memory that is counted: what calls hold, what sessions and idle objects keep.
  int64_t counted_bytes() const {
    return admission_.bytes() + admission_.kept_bytes() + idle_bytes() + other_memory_.kept_bytes();
  }
  // Memory kept for later calls.
  int64_t idle_bytes() const {
    return idle_solvers_.bytes() + idle_jobs_.bytes() + idle_solves_.bytes();
  }

  Admission& admission() { return admission_; }
  const FairQueue& queue() const { return queue_; }
  FairQueue& queue() { return queue_; }
  // The account of calls without one.
  ClientAccount* this_process() const { return this_process_.get(); }

  const ServerConfig& config() const { return config_; }

 private:
  struct Job;

  // Account and demand of an admitted call, until Release.
  struct Admitted {
    ClientAccount* account;
    Demand demand;
  };

  tl::expected<Admitted, ServiceError> Admit(const CallContext& call, const Demand& demand);
  void Release(const Admitted& admitted) {
    admission_.Release(admitted.account, admitted.demand);
    heap_trimmer_.Freed(admitted.demand.bytes);
  }
  // Keeps an object for later problems, or frees it where it is large or memory runs short.
  template <typename Item>
  void KeepOrFree(std::unique_ptr<Item> item, ObjectPool<Item>* pool) {
    const auto bytes = static_cast<int64_t>(StorageBytes(item));
    heap_trimmer_.Freed(bytes);
    if (bytes > kLargeObject_bytes || admission_.short_of_memory()) return;
    pool->Release(std::move(item), bytes);
  }

  // The part of a request that all calls with several problems have.
  struct BatchCall {
    Batch::Problems problems;
    Priority priority;
    std::function<ServiceStatus()> check;  // of the batch as a whole, once it is admitted
    std::function<void()> begin = [] {};   // once it is checked
    int64_t shared_bytes{0};               // that islands may take which its problems share
  };

  // An admitted call, which is to be run or started, and ended.
  using JobOrError = tl::expected<std::unique_ptr<Job>, ServiceError>;
  JobOrError MakeJob(const v1::SolveRequest& request, const CallContext& call,
                     v1::SolveResponse* response);
  JobOrError MakeJob(const v1::DifferentiateRequest& request, const CallContext& call,
                     v1::DifferentiateResponse* response);
  template <typename Response>
  std::unique_ptr<Job> TakeJob(Response* response);
  JobOrError Admit(std::unique_ptr<Job> job, const CallContext& call, const Demand& demand);
  // An error of these: nothing is started, and `done` is not called.
  ServiceStatus StartJob(JobOrError made, Done done, void* context);
  ServiceStatus Decode(Job* job);
  ServiceStatus Run(SolveJob* solve, TaskArena* arena, v1::ContactSolution* answer);
  TaskArena* ArenaFor(Dispatch dispatch) {
    return dispatch == Dispatch::kArena ? &arena_ : nullptr;
  }
  void Enqueue(std::unique_ptr<Job> job);
  void End(std::unique_ptr<Job> job, const ServiceStatus& status);

  template <typename Request>
  BatchCall BatchCallOf(const Request& request) const;
  BatchCall BatchCallOf(const v1::DifferentiateBatchRequest& request) const;
  ServiceStatus StartBatch(BatchCall batch, const CallContext& call, Batch::SolveProblem solve,
                           Done done, void* context);
  template <typename Request>
  Batch::SolveProblem SolverOf(const Request& request, int64_t shared_bytes,
                               const CallContext& call, BatchSink sink);
  Batch::SolveProblem SolverOf(const v1::DifferentiateBatchRequest& request,
                               const CallContext& call, v1::DifferentiateBatchResponse* response);
  template <typename Request>
  double SolveInBatch(const Request& batch, int i, const CallContext& call, SharedIslands* shared,
                      Dispatch dispatch, v1::Outcome* outcome);
  v1::DifferentiateOutcome DifferentiateInBatch(const v1::DifferentiateBatchRequest& batch, int i,
                                                const CallContext& call, Dispatch dispatch);
  std::unique_ptr<SolveJob> TakeSolve();
  template <typename Outcome>
  double RunInBatch(std::unique_ptr<SolveJob> solve, Dispatch dispatch, v1::ContactSolution* answer,
                    Outcome* outcome);

  const ServerConfig config_;
  const Telemetry telemetry_;
  Admission admission_;
  HeapTrimmer heap_trimmer_;
  OtherMemory other_memory_;
  int64_t child_bytes_{0};  // as the memory was last looked at
  MemoryGuard memory_guard_;
  Clock::time_point next_look_;  // at the memory of the process
  const std::shared_ptr<ClientAccount> this_process_;
  TaskArena arena_;
  FairQueue queue_;
  IdleSpinners idle_spinners_;
  ObjectPool<Solver> idle_solvers_;
  ObjectPool<Job> idle_jobs_;
  ObjectPool<SolveJob> idle_solves_;
};

}  // namespace sap
