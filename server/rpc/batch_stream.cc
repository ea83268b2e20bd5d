#include "server/rpc/batch_stream.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "server/rpc/completion_tag.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/stall_timer.h"
#include "server/rpc/unary_call.h"
#include "server/server_identity.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

}  // namespace

// One call. Arena threads append outcomes to a queue; one write is in progress at a time.
class BatchStream::Call final : private MessageTransfers::Reader {
 public:
  Call(BatchStream* method, grpc::ServerCompletionQueue* queue)
      : method_(method), queue_(queue), stream_(&context_) {
    method_->context_.in_flight_calls->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    method_->service_->Request(static_cast<int>(Method::kStreamBatch), &context_, &stream_, queue,
                               &accepted_tag_);
  }

  // Called periodically while the call is registered. After TryCancel the operation completes with
  // an error and the call ends as if the client had disconnected.
  void Sweep(Clock::time_point now) {
    const ServerConfig& config = method_->context_.handler->config();
    const std::chrono::duration<double> read_timeout(config.read_timeout_s);
    receiving_.CancelIfStartedBy(now - std::chrono::duration_cast<Clock::duration>(read_timeout),
                                 [this] { context_.TryCancel(); });
    const Lock lock(mutex_);
    if (writing_ && write_budget_.IsExceeded(now, config.session.write_timeout_s)) {
      context_.TryCancel();
    }
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Accepted(bool ok) {
    if (!ok) return Delete();  // shutting down: the done tag will not complete
    method_->Await(queue_);
    arrival_ = Clock::now();
    method_->context_.observer->Started(Method::kStreamBatch);
    method_->Add(this);
    auto account = method_->context_.authenticator->Identify(context_);
    if (!account) return Reject(ToRpcStatus(tl::unexpected(account.error())));
    account_ = std::move(*account);
    counted_ = true;
    if (!method_->context_.in_flight_calls->Enter()) return End(ShuttingDown());
    if (const auto checked = CheckAttempt(context_); !checked) return Reject(ToRpcStatus(checked));
    RequestHandler* const handler = method_->context_.handler;
    const auto reservation = handler->ReserveCall(account_.get(), PriorityInHeaders(context_));
    if (!reservation) return Reject(ToRpcStatus(tl::unexpected(reservation.error())));
    reservation_ = *reservation;
    const ServiceStatus begun = method_->context_.transfers->BeginRead(account_.get(), this);
    if (begun) return;
    handler->CountRefusal(begun.error());
    handler->ReleaseReservation(account_.get(), reservation_);
    Reject(ToRpcStatus(begun));
  }

  void PostRead() override {
    receiving_.Start(Clock::now());
    stream_.Read(&bytes_, &read_tag_);
  }

  void Read(bool ok) {
    receiving_.Stop();
    method_->context_.transfers->EndRead(account_.get());
    method_->context_.handler->ReleaseReservation(account_.get(), reservation_);
    arrival_ = Clock::now();
    if (!ok) return EndNotReceived();
    request_bytes_ = static_cast<int64_t>(bytes_.Length());
    if (!ParseMessage(&bytes_, &request_)) return End(NoMessage());
    // With the first outcome already: clients refuse servers whose bits could differ.
    context_.AddInitialMetadata("sap-server", ServerIdentity());
    const CallContext call_context{{arrival_, SteadyDeadline(context_), &cancelled_},
                                   account_.get()};
    method_->context_.handler->StartStreamBatch(
        request_, call_context,
        [this](int index, v1::Outcome outcome) { AddOutcome(index, std::move(outcome)); },
        [](void* call, const ServiceStatus& status) {
          static_cast<Call*>(call)->End(ToRpcStatus(status));
        },
        this);
  }

  // Sends the rejection at once, or delayed if the rate is exceeded.
  void Reject(const grpc::Status& status) {
    rejection_ = status;
    const bool delayed = delayed_rejection_.Delay(method_->context_.rejection_limiter,
                                                  account_.get(), queue_, &rejection_tag_);
    if (!delayed) SendRejection(true);
  }

  void SendRejection(bool) { End(rejection_); }

  void AddOutcome(int index, v1::Outcome outcome) {
    v1::StreamBatchResponse response;
    response.set_index(static_cast<uint32_t>(index));
    response.mutable_outcome()->Swap(&outcome);
    const Lock lock(mutex_);
    responses_.push_back(std::move(response));
    WriteNext();
  }

  // All problems are answered, or the call is rejected.
  void End(const grpc::Status& status) {
    const v1::StreamBatchRequest freed = std::move(request_);
    Lock lock(mutex_);
    if (request_bytes_ > 0) {
      answering_ = true;
      method_->context_.transfers->BeginAnswer(account_.get(), request_bytes_);
    }
    status_ = status;
    Advance(std::move(lock));
  }

  void EndNotReceived() {
    Lock lock(mutex_);
    not_received_ = true;
    status_ = NotReceived(context_);
    Advance(std::move(lock));
  }

  void Written(bool ok) {
    Lock lock(mutex_);
    writing_ = false;
    // The size is known from serializing it.
    write_budget_.WriteCompleted(Clock::now(),
                                 static_cast<size_t>(responses_.front().GetCachedSize()));
    responses_.pop_front();
    if (!ok) cancelled_.store(true, std::memory_order_relaxed);
    Advance(std::move(lock));
  }

  void Done(bool) {
    Lock lock(mutex_);
    done_ = true;
    if (context_.IsCancelled()) {
      cancelled_.store(true, std::memory_order_relaxed);
      delayed_rejection_.Cancel();
      method_->context_.transfers->Expedite(this);
    }
    Advance(std::move(lock));
  }

  void Finished(bool) {
    Lock lock(mutex_);
    finished_ = true;
    Advance(std::move(lock));
  }

  // Advances the call's state machine; deletes `this` when it is complete. Do not use the call
  // afterwards.
  void Advance(Lock lock) {
    WriteNext();
    if (status_ && !writing_ && !finishing_) {
      finishing_ = true;
      MarkAsServed(&context_);
      if (!status_->ok()) request_id_.Return(&context_);
      if (!not_received_) Report(*status_);
      stream_.Finish(*status_, &finished_tag_);
    }
    if (!finished_ || !done_) return;
    lock.unlock();
    if (not_received_) Report(NotReceived(context_));
    if (answering_) method_->context_.transfers->EndAnswer(account_.get(), request_bytes_);
    method_->Remove(this);
    if (counted_) method_->context_.in_flight_calls->Leave();
    Delete();
  }

  void Report(const grpc::Status& status) {
    method_->context_.observer->Ended(Method::kStreamBatch, status, SecondsSince(arrival_),
                                      context_, &request_id_, account_.get(), request_bytes_);
  }

  void Delete() {
    InFlightCalls* const in_flight_calls = method_->context_.in_flight_calls;
    delete this;
    in_flight_calls->EndOnQueue();
  }

  void WriteNext() {
    if (writing_ || responses_.empty() || cancelled_.load(std::memory_order_relaxed)) return;
    writing_ = true;
    write_budget_.WriteStarted(Clock::now());
    stream_.Write(responses_.front(), &written_tag_);
  }

  BatchStream* const method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;  // of the request, until they are parsed
  v1::StreamBatchRequest request_;
  int64_t request_bytes_{0};
  grpc::ServerAsyncReaderWriter<v1::StreamBatchResponse, grpc::ByteBuffer> stream_;
  StallTimer receiving_;
  std::shared_ptr<ClientAccount> account_;
  RequestId request_id_;
  RequestHandler::Reservation reservation_;
  bool counted_{
      false};  // in InFlightCalls; strangers are not, so that a drain does not wait for them
  Clock::time_point arrival_;
  std::atomic<bool> cancelled_{false};
  grpc::Status rejection_;
  DelayedRejection delayed_rejection_;

  std::mutex mutex_;
  std::deque<v1::StreamBatchResponse> responses_;  // the first one is being written if writing_
  std::optional<grpc::Status> status_;             // set when all problems are answered
  bool writing_{false};
  WriteBudget write_budget_;
  bool finishing_{false};
  bool finished_{false};
  bool done_{false};
  bool not_received_{false};  // reported at the end of the call, when it is known why
  bool answering_{false};     // between BeginAnswer and EndAnswer

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> rejection_tag_{this, &Call::SendRejection};
  MemberTag<Call> written_tag_{this, &Call::Written};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

void BatchStream::Await(grpc::ServerCompletionQueue* queue) { new Call(this, queue); }

void BatchStream::Sweep() {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) call->Sweep(now);
}

void BatchStream::Add(Call* call) {
  const std::lock_guard lock(mutex_);
  calls_.insert(call);
}

void BatchStream::Remove(Call* call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

}  // namespace sap
