// One call of SolveSession, with blocking operations. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>

#include "client/cpp/transport/call_completions.h"
#include "client/cpp/transport/grpc_call.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {

// While a message cannot be sent, responses are received: a server at its limit of bytes reads no
// further step before it has sent an answer.
class SessionCall {
 public:
  using Clock = CallCompletions::Clock;

  // What happens without a connection. Waiting keeps the channel polled, which gRPC otherwise does
  // every 5 s only.
  enum class WithoutConnection : uint8_t { kFails, kWaits };

  // `lost_attempts` of the step that this call is for. An operation that is not complete at the
  // limit cancels the call.
  SessionCall(v1::SolverService::Stub* stub, const CallStart& start, Transport::Timeout deadline,
              int lost_attempts, bool polls, WithoutConnection without_connection,
              Clock::time_point limit);

  // For later operations.
  void SetLimit(Clock::time_point limit) { limit_ = limit; }

  // False if the call has ended.
  bool Write(const v1::SolveSessionRequest& request);
  // The next response; false if the call has ended.
  bool Read(v1::SolveSessionResponse* response);

  // Ends the call in good order, without its remaining responses.
  grpc::Status Close();
  // To be called once, after Read has returned false or Cancel was called.
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }

  const grpc::ClientContext& context() const { return context_; }

 private:
  // The last operation of its kind; its address is its tag.
  struct Operation {
    bool pending{false};
    bool ok{false};
  };

  void StartRead();
  // Waits until an operation completes; cancels the call at its limit. False if none did by then.
  bool AwaitAny(Clock::time_point until);
  bool Await(Operation* operation);

  CallCompletions completions_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::SolveSessionRequest, v1::SolveSessionResponse>>
      stream_;
  Clock::time_point limit_;
  Operation write_;  // also the start, the half-close and the end of the call
  Operation read_;
  v1::SolveSessionResponse next_;                 // of the read in progress
  std::deque<v1::SolveSessionResponse> arrived_;  // received during writes
  bool at_end_{false};                            // a read has found the end of the call
};

}  // namespace sap::client
