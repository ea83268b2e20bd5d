#include "server/rpc/request_call.h"

#include <algorithm>
#include <utility>

#include "server/rpc/rpc_status.h"

namespace sap {
namespace {

// For the status of an evicted call to leave the connection.
constexpr std::chrono::seconds kStatusTimeout{1};

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
  receiving_ = true;
  if (services().transfers == nullptr) return PostRead();
  const ServiceStatus begun = services().transfers->BeginRead(account_.get(), this);
  if (begun) {
    if (cancelled()) services().transfers->Expedite(this);
    return;
  }
  --pending_;
  receiving_ = false;
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
  receiving_ = false;
  const bool is_over = end_status_.has_value();  // it was evicted
  if (!ok || is_over) {
    bytes_.Clear();
    EndReceiving();
    --pending_;
    if (!is_over) {
      reported_at_end_ = true;  // when it is known why
      EndWith(NotReceived(context_));
    }
    return Advance(std::move(lock));
  }
  arrival_ = Clock::now();
  if (services().transfers != nullptr) services().transfers->Received(this);
  request_bytes_ = held_bytes_ = static_cast<int64_t>(bytes_.Length());
  lock.unlock();
  Parse(bytes_.Length(), [](void* call) { static_cast<RequestCall*>(call)->ParseAndHandle(); });
}

// The place of the read is held until the message is parsed, so that places also bound the memory
// of messages that wait for it.
void RequestCall::ParseAndHandle() {
  const ServiceStatus parsed = ParseRequest(&bytes_);
  EndReceiving();
  if (!parsed) return Answer(ToRpcStatus(parsed), 0);
  Handle();
}

void RequestCall::EndReceiving() {
  if (services().transfers != nullptr) services().transfers->EndRead(this);
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
    services().transfers->BeginAnswer(this, held_bytes_);
  }
  last_message_.Swap(&message);
  EndWith(status);
  Advance(std::move(lock));
}

// After TryCancel the operation completes with an error, and the call ends as if the client had
// cancelled it.
void RequestCall::CancelIfOverdue(Clock::time_point now) {
  if (receiving_ && evicted()) return EndEvicted(now);
  if (answering_ && answer_evicted()) context_.TryCancel();
  const Clock::rep start = read_start_;
  if (start == 0) return;
  const std::chrono::duration<double> reading = now.time_since_epoch() - Clock::duration(start);
  if (reading.count() > config().read_timeout_s) context_.TryCancel();
}

// A read that is posted completes with the end of the stream. Where the status does not leave the
// connection, the stream is cancelled, which frees its memory at once.
void RequestCall::EndEvicted(Clock::time_point now) {
  if (finishing_) {
    if (now - finish_start_ > kStatusTimeout) context_.TryCancel();
    return;
  }
  const ServiceError error = MessageTransfers::SlowRequest();
  services().handler->CountRefusal(error);
  EndWith(ToRpcStatus(tl::unexpected(error)));
  if (withdrawn()) {
    receiving_ = false;
    EndReceiving();
    --pending_;
  }
  FinishIfPossible();
}

void RequestCall::OnCancelled() {
  if (services().transfers != nullptr) services().transfers->Expedite(this);
}

grpc::Status RequestCall::StatusAtEnd() { return NotReceived(context_); }

void RequestCall::AtEnd() {
  if (answering_) services().transfers->EndAnswer(this);
}

}  // namespace sap
