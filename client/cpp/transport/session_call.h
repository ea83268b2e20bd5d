// One call of SolveSession. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>

#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/grpc_call.h"
#include "client/cpp/transport/task.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

// While a message cannot be sent, responses are received: a server at its limit of bytes reads no
// further step before it has sent an answer.
class SessionCall {
 public:
  // Action without a connection. Waiting keeps the channel polled, which gRPC otherwise does every
  // 5 s only.
  enum class WithoutConnection : uint8_t { kFails, kWaits };

  explicit SessionCall(Events* events) : events_(events) {}

  // Opens the call; false if it has ended. An operation that is not complete at the limit cancels
  // it.
  Task<bool> Open(const std::shared_ptr<grpc::Channel>& channel, const CallStart& start,
                  Timeout deadline, int lost_attempts, WithoutConnection without_connection,
                  Clock::time_point limit);

  // For later operations.
  void SetLimit(Clock::time_point limit);
  // To be called after each event.
  void CheckLimit();

  // Writes a SolveSessionRequest; false if the call has ended.
  Task<bool> Write(const grpc::ByteBuffer& request);

  // Begins to receive the next response, unless one is here or on its way.
  void StartReading();
  // Takes a response that has arrived; false: none has.
  bool TakeResponse(v1::SolveSessionResponse* response);
  // Whether no response will arrive any more.
  bool at_end() const { return at_end_ && arrived_.empty(); }
  // Waits for the next response; false if the call has ended.
  Task<bool> Read(v1::SolveSessionResponse* response);

  // Ends the call in good order, without its remaining responses.
  Task<grpc::Status> Close();
  // To be called once, after the end or Cancel.
  Task<grpc::Status> Finish();
  void Cancel() { context_.TryCancel(); }

  const grpc::ClientContext& context() const { return context_; }

 private:
  Task<bool> Await(const Operation& operation);
  void KeepResponse();

  Events* const events_;
  grpc::ClientContext context_;
  const CancelledWithEvents cancelled_{events_, &context_};
  std::unique_ptr<grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, v1::SolveSessionResponse>>
      stream_;
  Clock::time_point limit_{kNever};
  Operation write_;  // also the start, the half-close and the end of the call
  Operation read_;
  v1::SolveSessionResponse next_;  // of the read in progress
  bool is_reading_{false};         // until KeepResponse
  std::deque<v1::SolveSessionResponse> arrived_;
  bool at_end_{false};  // a read has found the end of the call
};

}  // namespace sap::client
