// One problem from request to answer:
//
//   message -> decoded -> SolveTask of the engine -> encoded -> message
//
// Unary calls, batches and sessions all use this class, so their answers are the same. It knows
// neither transport nor admission nor threads.
#pragma once

#include <memory>

#include "proto/codec/problem_decoder.h"
#include "sap/v1/problem.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/scheduling/call_context.h"
#include "server/server_config.h"
#include "server/service/derivatives_size.h"
#include "server/service/metrics.h"
#include "server/service/request_recorder.h"
#include "solver/engine/solve_memory.h"
#include "solver/engine/solve_task.h"
#include "solver/solve.h"

namespace sap {

inline Priority PriorityOf(const v1::SolveOptions& options) {
  return options.priority() == v1::PRIORITY_HIGH ? Priority::kHigh : Priority::kNormal;
}

// As BytesOfSolve of its view.
inline int64_t BytesOfSolve(const v1::ContactProblem& problem, const v1::SolveOptions& options) {
  return BytesOfSolve(DecodeDirection(problem), DecodeMethod(options));
}

// Receivers of results and counts; each may be null.
struct Telemetry {
  RequestRecorder* recorder{nullptr};
  Metrics* metrics{nullptr};

  // Counts the error if a limit caused it.
  void CountRefusal(const ServiceError& error) const {
    if (metrics != nullptr && !error.reason.empty()) metrics->Refused(error.reason);
  }
};

// Reusable: a problem no larger than an earlier one allocates no memory.
class SolveJob {
 public:
  // Starts a new problem; null: the request contains none. The messages and the cancellation flag
  // must live until the problem is answered.
  // `shared`: islands of the batch that it belongs to; null: none.
  void Begin(const v1::ContactProblem* problem, const v1::SolveOptions& options,
             const CallContext& call, SharedIslands* shared = nullptr);

  // Starts a new problem to differentiate, whose derivatives go to the response; `batch` is the
  // request that it belongs to, if any.
  void Begin(const v1::DifferentiateRequest& request, const CallContext& call,
             v1::DifferentiateResponse* response,
             const v1::DifferentiateBatchRequest* batch = nullptr);

  // Decodes and validates options and problem. Call once per problem.
  ServiceStatus Decode(const ServerConfig& config);

  // Whether the decoded problem is predicted to take less time than the inline limit.
  bool IsSmall(const ServerConfig& config) const;
  // Whether decoding alone is predicted to exceed the inline limit.
  bool IsLongMessage(const ServerConfig& config) const;

  bool decoded() const { return decoded_; }
  SolveTask& task() { return task_; }
  const ContactSolution& solution() const { return solution_; }
  const CallContext& call() const { return call_; }
  const v1::SolveOptions& options() const { return *options_; }

  // Part of the work of the solved problem that was done for it; the rest is that of islands which
  // were copied.
  double share_of_work() const;

  // Bytes kept for the next problem.
  size_t storage_bytes() const { return StorageBytes(task_, solution_); }
  // Frees the plans of earlier problems.
  void DropUnusedPlans() { task_.DropUnusedPlans(); }
  // Frees all of it.
  void FreeStorage() {
    task_ = {};
    solution_ = {};
  }

  // Adds time spent in the queue.
  void AddQueueTime(double seconds);

  // Solves the decoded problem, differentiates it if that was asked for, and fills the answer
  // fields selected by the response mask and the wanted derivatives. An error if the call was
  // cancelled or its deadline passed.
  ServiceStatus Solve(Solver* solver, v1::ContactSolution* answer);

  // Updates the metrics, records the problem if the recording rule selects it, and frees the
  // derivatives. Call once, at the end.
  void Report(const ServiceStatus& status, const Telemetry& telemetry);

 private:
  // The additional part of a call of Differentiate.
  struct Differentiation {
    const v1::DifferentiateRequest* request;
    v1::DifferentiateResponse* response;
    int64_t answer_bytes{0};
    Derivatives derivatives{};
  };

  SolveLimits Limits() const;
  ServiceStatus DecodeSettings(const ServerConfig& config);
  ServiceStatus DecodeAll(const ServerConfig& config);
  void Record(const ServiceStatus& status, RequestRecorder* recorder) const;
  void AddTimings(v1::PhaseTimings* timings) const;
  void EndPhase(Phase phase, double duration_s) const;
  v1::RecordedSolve MakeRecord(const ServiceStatus& status, double duration_s) const;

  const v1::ContactProblem* message_{nullptr};
  const v1::SolveOptions* options_{nullptr};
  std::unique_ptr<Differentiation> differentiation_;  // null: only the solution is asked for
  const v1::DifferentiateBatchRequest* batch_{nullptr};
  SharedIslands* shared_{nullptr};
  CallContext call_;
  bool decoded_{false};
  SolveTask task_;
  SolveSettings settings_;
  ContactSolution solution_;
  bool small_{false};
  double queue_s_{0};
  double decode_s_{0};
  double encode_s_{0};
};

}  // namespace sap
