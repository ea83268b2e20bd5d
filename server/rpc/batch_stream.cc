#include "server/rpc/batch_stream.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "server/rpc/completion_tag.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/unary_call.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

}  // namespace

// One call. Arena threads append outcomes to a queue; one write is in progress at a time.
class BatchStream::Call {
 public:
  Call(BatchStream* method, grpc::ServerCompletionQueue* queue)
      : method_(method), queue_(queue), stream_(&context_) {
    method_->context_.in_flight_calls->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    method_->service_->Request(static_cast<int>(Method::kStreamBatch), &context_, &stream_, queue,
                               &accepted_tag_);
  }

  // Called periodically while the call is registered.
  void Sweep(Clock::time_point now) {
    const double timeout_s = method_->context_.engine->config().session.write_timeout_s;
    const Lock lock(mutex_);
    const std::chrono::duration<double> elapsed = now - last_write_;
    // After TryCancel the write completes with an error and the call ends as if the client had
    // disconnected.
    if (writing_ && elapsed.count() > timeout_s) context_.TryCancel();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Accepted(bool ok) {
    if (!ok) return Delete();  // shutting down: the done tag will not complete
    method_->Await(queue_);
    arrival_ = Clock::now();
    method_->context_.observer->Started(Method::kStreamBatch);
    if (method_->context_.in_flight_calls->draining()) return End(ShuttingDown());
    auto account = method_->context_.authenticator->Identify(context_);
    if (!account) return Reject(ToRpcStatus(tl::unexpected(account.error())));
    account_ = std::move(*account);
    const auto reservation =
        method_->context_.engine->ReserveCall(account_.get(), PriorityInHeaders(context_));
    if (!reservation) return Reject(ToRpcStatus(tl::unexpected(reservation.error())));
    reservation_ = *reservation;
    stream_.Read(&request_, &read_tag_);
  }

  void Read(bool ok) {
    method_->context_.engine->ReleaseReservation(account_.get(), reservation_);
    arrival_ = Clock::now();
    counted_ = true;
    if (!method_->context_.in_flight_calls->Enter()) return End(ShuttingDown());
    if (!ok) return End({grpc::StatusCode::INVALID_ARGUMENT, "the message cannot be read"});
    method_->Add(this);
    const CallContext call_context{arrival_, SteadyDeadline(context_), &cancelled_, account_.get()};
    method_->context_.engine->StartStreamBatch(
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
    const bool delayed = method_->context_.rejection_limiter->Delay(
        account_.get(), queue_, &rejection_tag_, &rejection_alarm_);
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

  void End(const grpc::Status& status) {
    Lock lock(mutex_);
    status_ = status;
    Advance(std::move(lock));
  }

  void Written(bool ok) {
    Lock lock(mutex_);
    writing_ = false;
    responses_.pop_front();
    if (!ok) cancelled_.store(true, std::memory_order_relaxed);
    Advance(std::move(lock));
  }

  void Done(bool) {
    Lock lock(mutex_);
    done_ = true;
    if (context_.IsCancelled()) {
      cancelled_.store(true, std::memory_order_relaxed);
      rejection_alarm_.Cancel();  // the client no longer waits for the rejection
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
      const std::chrono::duration<double> took = Clock::now() - arrival_;
      method_->context_.observer->Ended(Method::kStreamBatch, *status_, took.count(), context_,
                                        account_.get(), request_);
      stream_.Finish(*status_, &finished_tag_);
    }
    if (!finished_ || !done_) return;
    lock.unlock();
    method_->Remove(this);
    if (counted_) method_->context_.in_flight_calls->Leave();
    Delete();
  }

  void Delete() {
    InFlightCalls* const in_flight_calls = method_->context_.in_flight_calls;
    delete this;
    in_flight_calls->EndOnQueue();
  }

  void WriteNext() {
    if (writing_ || responses_.empty() || cancelled_.load(std::memory_order_relaxed)) return;
    writing_ = true;
    last_write_ = Clock::now();
    stream_.Write(responses_.front(), &written_tag_);
  }

  BatchStream* const method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  v1::StreamBatchRequest request_;
  grpc::ServerAsyncReaderWriter<v1::StreamBatchResponse, v1::StreamBatchRequest> stream_;
  std::shared_ptr<ClientAccount> account_;
  Engine::Reservation reservation_;
  Clock::time_point arrival_;
  std::atomic<bool> cancelled_{false};
  grpc::Status rejection_;
  grpc::Alarm rejection_alarm_;

  std::mutex mutex_;
  std::deque<v1::StreamBatchResponse> responses_;  // the first one is being written if writing_
  std::optional<grpc::Status> status_;             // set when all problems are answered
  bool writing_{false};
  Clock::time_point last_write_;
  bool finishing_{false};
  bool finished_{false};
  bool done_{false};
  bool counted_{false};  // counted in InFlightCalls

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
