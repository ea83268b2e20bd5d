#include "server/rpc/request_call.h"

#include <algorithm>
#include <utility>

#include "server/rpc/rpc_status.h"

namespace sap {
namespace {

// The status of a call whose message was not received, once its end is known.
grpc::Status NotReceived(const grpc::ServerContext& context) {
  if (!context.IsCancelled()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"};
  }
  if (context.deadline() <= std::chrono::system_clock::now()) {
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "the deadline passed before the message arrived"};
  }
  return {grpc::StatusCode::CANCELLED,
          "the client cancelled the call, or its message is too large or did not arrive in time"};
}

}  // namespace

void RequestCall::Begin() {
  if (!LetIn()) return;
  ++pending_;
  if (services().transfers == nullptr) return PostRead();
  const ServiceStatus begun = services().transfers->BeginRead(account_.get(), this);
  if (begun) return;
  --pending_;
  if (services().handler != nullptr) services().handler->CountRefusal(begun.error());
  ReleaseReservation();
  Reject(ToRpcStatus(begun));
}

ServiceStatus RequestCall::CheckLimits() {
  if (!method_->description().reserves) return ServerCall::CheckLimits();
  return services()
      .handler->ReserveCall(account_.get(), PriorityInHeaders(context_))
      .map([this](const RequestHandler::Reservation& reservation) { reservation_ = reservation; });
}

void RequestCall::PostRead() {
  read_start_ = Clock::now().time_since_epoch().count();
  stream_.Read(&bytes_, &read_tag_);
}

// From here on the operation that is pending is the handling of the request.
void RequestCall::Read(bool ok) {
  Lock lock(mutex_);
  read_start_ = 0;
  arrival_ = Clock::now();
  if (!ok) {
    EndReceiving();
    --pending_;
    reported_at_end_ = true;  // when it is known why
    EndWith(NotReceived(context_));
    return Advance(std::move(lock));
  }
  request_bytes_ = held_bytes_ = static_cast<int64_t>(bytes_.Length());
  lock.unlock();
  Parse(bytes_.Length(), [](void* call) { static_cast<RequestCall*>(call)->ParseAndHandle(); });
}

// The slot of the read is held until the message is parsed, so that slots also bound the memory of
// messages that wait for it.
void RequestCall::ParseAndHandle() {
  const ServiceStatus parsed = ParseRequest(&bytes_);
  EndReceiving();
  if (!parsed) return Answer(ToRpcStatus(parsed), 0);
  Handle();
}

void RequestCall::EndReceiving() {
  if (services().transfers != nullptr) services().transfers->EndRead(account_.get());
  ReleaseReservation();
}

void RequestCall::ReleaseReservation() {
  if (services().handler == nullptr || !method_->description().reserves) return;
  services().handler->ReleaseReservation(account_.get(), reservation_);
}

void RequestCall::Answer(const grpc::Status& status, int64_t answer_bytes,
                         grpc::ByteBuffer message) {
  Lock lock(mutex_);
  --pending_;
  if (services().transfers != nullptr) {
    answering_ = true;
    held_bytes_ = std::max(held_bytes_, answer_bytes);
    services().transfers->BeginAnswer(account_.get(), held_bytes_);
  }
  last_message_.Swap(&message);
  EndWith(status);
  Advance(std::move(lock));
}

// After TryCancel the operation completes with an error, and the call ends as if the client had
// cancelled it.
void RequestCall::CancelIfOverdue(Clock::time_point now) {
  const Clock::rep start = read_start_;
  if (start == 0) return;
  const std::chrono::duration<double> reading = now.time_since_epoch() - Clock::duration(start);
  if (reading.count() > config().read_timeout_s) context_.TryCancel();
}

void RequestCall::OnCancelled() {
  if (services().transfers != nullptr) services().transfers->Expedite(this);
}

grpc::Status RequestCall::StatusAtEnd() { return NotReceived(context_); }

void RequestCall::AtEnd() {
  if (answering_) services().transfers->EndAnswer(account_.get(), held_bytes_);
}

}  // namespace sap
