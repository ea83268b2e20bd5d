// Between the client's types and the messages of the wire. Internal: users see no message.
#pragma once

#include <tl/expected.hpp>

#include "client/cpp/client.h"
#include "sap/v1/problem.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

void ToMessage(const Problem& problem, v1::ContactProblem* message);
void ToMessage(const SolveOptions& options, v1::SolveOptions* message);
void ToMessage(const Solution& solution, v1::ContactSolution* message);
void ToMessage(const Error& error, v1::Failure* message);

// An unknown rule of regularization is refused, everything else is carried over unchecked.
tl::expected<Problem, Error> FromMessage(const v1::ContactProblem& message);
tl::expected<Solution, Error> FromMessage(const v1::ContactSolution& message);
tl::expected<Solution, Error> FromMessage(const v1::Outcome& message);
ServerInfo FromMessage(const v1::GetServerInfoResponse& message);

std::chrono::nanoseconds FromMessage(const google::protobuf::Duration& message);

// The numbers of google.rpc.Code, which are those of gRPC.
ErrorCode FromCode(int code);
int ToCode(ErrorCode code);

}  // namespace sap::client
