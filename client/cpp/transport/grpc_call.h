// Context and status of gRPC calls: deadline and authorization in, Error out. Internal.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <utility>

#include "client/cpp/backend/call_types.h"
#include "client/cpp/solve_options.h"
#include "client/cpp/transport/authorization.h"
#include "client/cpp/transport/server_identity.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {

// Paths of the methods of SolverService.
namespace methods {
inline constexpr const char* kSolve = "/sap.v1.SolverService/Solve";
inline constexpr const char* kSolveBatch = "/sap.v1.SolverService/SolveBatch";
inline constexpr const char* kStreamBatch = "/sap.v1.SolverService/StreamBatch";
inline constexpr const char* kSolveSession = "/sap.v1.SolverService/SolveSession";
inline constexpr const char* kDifferentiate = "/sap.v1.SolverService/Differentiate";
inline constexpr const char* kDifferentiateBatch = "/sap.v1.SolverService/DifferentiateBatch";
inline constexpr const char* kGetServerInfo = "/sap.v1.SolverService/GetServerInfo";
}  // namespace methods

// A stub whose requests are serialized already (request_bytes.h).
template <typename Response>
using BytesStub = grpc::TemplatedGenericStub<grpc::ByteBuffer, Response>;

// gRPC ends the process over a header that it cannot send.
Status CheckHeaders(const CallOptions& call);

// Context of each attempt of a call.
struct CallStart {
  std::shared_ptr<Authorization> authorization;
  CallOptions call{};
  bool high_priority{false};
  bool encrypted{false};

  // Sets in a context what every call needs: the headers, the deadline, and the number of the
  // attempt if an earlier one was lost after it was sent.
  void Prepare(Timeout timeout, int lost_attempts, grpc::ClientContext* context) const;
};

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// In the trailing metadata it says who has decided how the call ends, in the initial metadata who
// answers.
ServerIdentity IdentityIn(const Metadata& metadata);

// The error of a call that has ended with one. Includes field, reason and retry time from the
// details of the status, request id and server from the trailing metadata, whether the call was
// lost after it was sent, and advice where there was no connection, with TLS or without.
Error ToError(const grpc::Status& status, const grpc::ClientContext& context, bool encrypted);

inline Status FromRpcStatus(const grpc::Status& status, const grpc::ClientContext& context,
                            bool encrypted) {
  if (status.ok()) return {};
  return tl::unexpected(ToError(status, context, encrypted));
}

}  // namespace sap::client
