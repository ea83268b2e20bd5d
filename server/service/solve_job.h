// One problem from request to answer:
//
//   message -> options and problem, validated -> solution -> message
//
// Unary calls, batches and sessions all use this class, so their answers are the same. It knows
// neither transport nor admission nor threads. Derivatives are an addition to it: DerivativesJob.
#pragma once

#include <exception>
#include <memory>
#include <new>

#include "sap/v1/problem.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/scheduling/call_context.h"
#include "server/server_config.h"
#include "server/service/derivatives_job.h"
#include "server/service/metrics.h"
#include "server/service/problem_decoder.h"
#include "server/service/request_recorder.h"
#include "solver/solve.h"

namespace sap {

// Runs a step and converts exceptions to errors. Only the standard library throws, when memory runs
// out; that must not end other calls.
template <typename Step>
ServiceStatus CatchExceptions(const Step& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(
        ServiceError{ServiceCode::kResourceExhausted, "not enough memory for this problem", ""});
  } catch (const std::exception& error) {
    return tl::unexpected(ServiceError{ServiceCode::kInternal, error.what(), ""});
  }
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
  void Begin(const v1::ContactProblem* problem, const v1::SolveOptions& options,
             const CallContext& call);

  // The same for a problem to differentiate, whose derivatives go to the response; `batch` is the
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
  ContactProblem& problem() { return problem_; }
  const ContactSolution& solution() const { return solution_; }
  const CallContext& call() const { return call_; }
  const v1::SolveOptions& options() const { return *options_; }

  // Adds time spent in the queue.
  void AddQueueTime(double seconds) { queue_s_ += seconds; }

  // Solves the decoded problem, differentiates it if that was asked for, and fills the answer
  // fields selected by the response mask and the wanted derivatives. An error if the call was
  // cancelled or its deadline passed.
  ServiceStatus Solve(Solver* solver, v1::ContactSolution* answer);

  // Updates the metrics, records the problem if the recording rule selects it, and frees the
  // derivatives. Call once, at the end.
  void Report(const ServiceStatus& status, const Telemetry& telemetry);

 private:
  SolveLimits Limits() const;
  ServiceStatus DecodeSettings(const ServerConfig& config);
  tl::expected<void, MemoryLimitExceeded> SolveOrDifferentiate(Solver* solver);
  ServiceStatus DecodeAll(const ServerConfig& config);
  void Record(const ServiceStatus& status, RequestRecorder* recorder) const;
  void AddTimings(v1::PhaseTimings* timings) const;
  v1::RecordedSolve MakeRecord(const ServiceStatus& status, double duration_s) const;

  const v1::ContactProblem* message_{nullptr};
  const v1::SolveOptions* options_{nullptr};
  std::unique_ptr<DerivativesJob> derivatives_;  // null: only the solution is asked for
  const v1::DifferentiateBatchRequest* batch_{nullptr};
  CallContext call_;
  bool decoded_{false};
  ContactProblem problem_;
  SolveSettings settings_;
  ContactSolution solution_;
  double predicted_s_{0};  // of the solve
  bool small_{false};
  double queue_s_{0};
  double decode_s_{0};
  double encode_s_{0};
};

}  // namespace sap
