// One problem on its way through the service:
//
//   message -> options and problem, checked -> solution -> message
//
// Nothing here knows of transports, admission or threads: unary calls, batches and sessions all
// take this way, so that their answers are the same.
#pragma once

#include <exception>
#include <new>

#include "sap/v1/problem.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/engine/metrics.h"
#include "server/engine/problem_decoder.h"
#include "server/engine/request_recorder.h"
#include "server/scheduling/call_context.h"
#include "server/server_config.h"
#include "solver/solve.h"

namespace sap {

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

// Who is told what became of problems; each may be null.
struct Observers {
  RequestRecorder* recorder{nullptr};
  Metrics* metrics{nullptr};

  // If the error is that of a limit.
  void CountRefusal(const ServiceError& error) const {
    if (metrics != nullptr && !error.reason.empty()) metrics->Refused(error.reason);
  }
};

// Reused: a problem of the size of one before allocates nothing.
class SolveJob {
 public:
  // Takes up a problem; null: the request has none. The messages, and the flag in the limits, must
  // live until it is answered.
  void Begin(const v1::ContactProblem* problem, const v1::SolveOptions& options,
             const CallContext& limits);

  // Checks everything. Once per problem.
  ServiceStatus Decode(const ServerConfig& config);

  // Of a decoded problem. Whether it is predicted to take less time than a thread that receives
  // calls may spend on it.
  bool IsSmall(const ServerConfig& config) const;
  // Whether decoding alone would take longer than that.
  bool IsLongMessage(const ServerConfig& config) const;

  bool decoded() const { return decoded_; }
  ContactProblem& problem() { return problem_; }
  const ContactSolution& solution() const { return solution_; }
  const CallContext& limits() const { return limits_; }
  const v1::SolveOptions& options() const { return *options_; }

  // Time that the problem has waited for a thread.
  void AddQueueTime(double seconds) { queue_s_ += seconds; }

  // Solves the decoded problem and fills the fields of the answer that the options ask for. An
  // error if nobody waits for it any more.
  ServiceStatus Solve(Solver* solver, v1::ContactSolution* answer);

  // Tells what came of the problem; the recorder only if its rule wants it.
  void Report(const ServiceStatus& status, const Observers& observers) const;

 private:
  ServiceStatus DecodeAll(const ServerConfig& config);
  void Record(const ServiceStatus& status, RequestRecorder* recorder) const;
  void AddTimings(v1::PhaseTimings* timings) const;
  v1::RecordedSolve MakeRecord(const ServiceStatus& status, double duration_s) const;

  const v1::ContactProblem* message_{nullptr};
  const v1::SolveOptions* options_{nullptr};
  CallContext limits_;
  bool decoded_{false};
  ContactProblem problem_;
  SolveSettings settings_;
  ContactSolution solution_;
  double predicted_s_{0};  // of the solve
  double queue_s_{0};
  double decode_s_{0};
  double encode_s_{0};
};

}  // namespace sap
