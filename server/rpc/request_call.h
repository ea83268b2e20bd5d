// A call with one request message: its read in a slot of MessageTransfers, its parse, its answer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>

#include "server/rpc/message_bytes.h"
#include "server/rpc/server_call.h"

namespace sap {

class RequestCall : public ServerCall, private MessageTransfers::Reader {
 protected:
  RequestCall(RpcMethod* method, grpc::ServerCompletionQueue* queue) : ServerCall(method, queue) {}

  virtual ServiceStatus ParseRequest(grpc::ByteBuffer* bytes) = 0;
  // The request is parsed. Answer has to be called once, now or later, on any thread. Does not hold
  // the lock, nor does ParseRequest.
  virtual void Handle() = 0;

  // The handling has ended, and the call ends with this status. Do not use the call afterwards.
  void Answer(const grpc::Status& status, int64_t answer_bytes, grpc::ByteBuffer message = {});

  void OnCancelled() override;
  void CancelIfOverdue(Clock::time_point now) override;
  grpc::Status StatusAtEnd() override;
  void AtEnd() override;

 private:
  void Begin() final;
  ServiceStatus CheckLimits() final;
  void PostRead() final;
  void Read(bool ok);
  void EndEvicted(Clock::time_point now);
  void ParseAndHandle();
  void EndReceiving();
  void ReleaseReservation();

  RequestHandler::Reservation reservation_;
  bool receiving_{false};  // the request is waited for, or read
  // Ticks of the clock; 0: no read is posted. The read may be posted by another call, which does
  // not hold the lock.
  std::atomic<Clock::rep> read_start_{0};
  grpc::ByteBuffer bytes_;  // of the request, until they are parsed
  int64_t held_bytes_{0};   // while the answer is not taken: of request or answer, the larger
  bool answering_{false};   // between BeginAnswer and EndAnswer

  MemberTag<RequestCall> read_tag_{this, &RequestCall::Read};
};

}  // namespace sap
