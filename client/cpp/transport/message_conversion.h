// Conversion between the types of the client and the messages of the wire. Internal: the public
// headers show no message.
#pragma once

#include <chrono>
#include <span>
#include <tl/expected.hpp>

#include "client/cpp/client.h"
#include "proto/codec/problem_encoder.h"
#include "sap/v1/problem.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

inline void ToMessage(const ContactProblemView& problem, v1::ContactProblem* message) {
  EncodeProblem(problem, message);
}
inline void ToMessage(const Problem& problem, v1::ContactProblem* message) {
  ToMessage(ViewOf(problem), message);
}
void ToMessage(const SolveOptions& options, v1::SolveOptions* message);
void ToMessage(const Solution& solution, v1::ContactSolution* message);
void ToMessage(const Error& error, v1::Failure* message);
void ToMessage(const DifferentiateView& request, v1::DifferentiateRequest* message);
void ToMessage(std::chrono::nanoseconds time, google::protobuf::Duration* message);

// An unknown rule or preset of the regularization is an error; all else is copied unchecked.
tl::expected<Problem, Error> FromMessage(const v1::ContactProblem& message);
tl::expected<Solution, Error> FromMessage(const v1::ContactSolution& message);
tl::expected<Solution, Error> FromMessage(const v1::Outcome& message);
tl::expected<Derivatives, Error> FromMessage(const v1::DifferentiateResponse& message);
tl::expected<Derivatives, Error> FromMessage(const v1::DifferentiateOutcome& message);
ServerInfo FromMessage(const v1::GetServerInfoResponse& message);

std::chrono::nanoseconds FromMessage(const google::protobuf::Duration& message);

}  // namespace sap::client
