// The derivatives of one problem from request to answer:
//
//   cotangents, tangents -> checked -> Solver::Differentiate -> wanted inputs -> message
//
// SolveJob does the rest of a call of Differentiate, which is that of a call of Solve.
#pragma once

#include <cstdint>
#include <tl/expected.hpp>
#include <vector>

#include "sap/v1/solver_service.pb.h"
#include "server/server_config.h"
#include "server/service/wanted_inputs.h"
#include "server/service_error.h"
#include "solver/differentiate.h"
#include "solver/problem/contact_problem.h"
#include "solver/solve.h"

namespace sap {

// Bounds on the memory of the derivatives of a problem, from the counts of its message.
struct DerivativesSize {
  int64_t answer_bytes{0};   // message, solution included
  int64_t working_bytes{0};  // derivatives with respect to all inputs, wanted or not
};

// The size, or why a server with these limits does not compute so much: INVALID_ARGUMENT,
// ANSWER_BYTES, SOLVE_MEMORY. Allocates nothing of it; the problem need not be valid.
tl::expected<DerivativesSize, ServiceError> CheckSize(const v1::DifferentiateRequest& request,
                                                      const ServerConfig& config);

// RESOURCE_EXHAUSTED if an answer of this size is larger than the largest message.
ServiceStatus CheckAnswerBytes(int64_t bytes, const ServerConfig& config);

// Predicted time of solving and differentiating, as a multiple of that of solving.
double RelativeWork(const v1::DifferentiateRequest& request);

class DerivativesJob {
 public:
  // Where relative_tolerance is absent.
  static constexpr double kRelativeTolerance = 1e-10;

  // The messages must live as long as the job.
  DerivativesJob(const v1::DifferentiateRequest* request, v1::DifferentiateResponse* response)
      : request_(request), response_(response) {}

  const v1::DifferentiateRequest& request() const { return *request_; }
  int64_t answer_bytes() const { return size_.answer_bytes; }

  // Checks what belongs to the derivatives. A given velocity becomes the guess of the problem,
  // which has been read from the view.
  ServiceStatus Decode(const ServerConfig& config, const ContactProblemView& view,
                       ContactProblem* problem);

  // Requires Decode. Also returns the solution.
  tl::expected<void, MemoryLimitExceeded> Differentiate(Solver* solver,
                                                        const ContactProblem& problem,
                                                        const SolverOptions& options,
                                                        const StopToken& stop,
                                                        ContactSolution* solution);

  // Fills the answer, except the solution, and frees the derivatives.
  void Encode(const ContactProblem& problem);

 private:
  ServiceStatus DecodeVelocity(ContactProblem* problem) const;
  ServiceStatus DecodeCotangents(const ContactProblem& problem);
  ServiceStatus DecodeTangents();

  const v1::DifferentiateRequest* const request_;
  v1::DifferentiateResponse* const response_;
  DerivativesSize size_;
  ContactProblemView view_;
  WantedInputs wanted_;
  std::vector<Cotangent> cotangents_;           // views of the message
  std::vector<ContactProblemView> directions_;  // views of the message
  Derivatives derivatives_;
};

}  // namespace sap
