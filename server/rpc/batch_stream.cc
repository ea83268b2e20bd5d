#include "server/rpc/batch_stream.h"

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

// One call. Outcomes come from the threads of the arena; one is written at a time, the others wait.
class BatchStream::Call {
 public:
  Call(BatchStream* method, grpc::ServerCompletionQueue* queue)
      : method_(method), queue_(queue), stream_(&context_) {
    method_->context_.in_flight_calls->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    method_->service_->Request(static_cast<int>(Method::kStreamBatch), &context_, &stream_, queue,
                               &accepted_tag_);
  }

  // Called every now and then, while the call is registered.
  void Sweep(Clock::time_point now) {
    const double timeout_s = method_->context_.engine->config().session.write_timeout_s;
    const Lock lock(mutex_);
    const std::chrono::duration<double> still = now - last_write_;
    // The write completes, and the call ends, as if the client were gone.
    if (writing_ && still.count() > timeout_s) context_.TryCancel();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Accepted(bool ok) {
    if (!ok) return Delete();  // the server shuts down, and the done tag will not come
    method_->Await(queue_);
    arrival_ = Clock::now();
    method_->context_.watch->Started(Method::kStreamBatch);
    if (method_->context_.in_flight_calls->draining()) return End(ShuttingDown());
    auto account = method_->context_.authenticator->Identify(context_);
    if (!account) return End(ToRpcStatus(tl::unexpected(account.error())));
    account_ = std::move(*account);
    const auto expected =
        method_->context_.engine->Expect(account_.get(), PriorityInHeaders(context_));
    if (!expected) return End(ToRpcStatus(tl::unexpected(expected.error())));
    expected_ = *expected;
    stream_.Read(&request_, &read_tag_);
  }

  void Read(bool ok) {
    method_->context_.engine->Arrived(account_.get(), expected_);
    arrival_ = Clock::now();
    entered_ = true;
    if (!method_->context_.in_flight_calls->Enter()) return End(ShuttingDown());
    if (!ok) return End({grpc::StatusCode::INVALID_ARGUMENT, "the message cannot be read"});
    method_->Add(this);
    const CallContext limits{arrival_, SteadyDeadline(context_), &cancelled_, account_.get()};
    method_->context_.engine->StartStreamBatch(
        request_, limits,
        [this](int index, v1::Outcome outcome) { Answer(index, std::move(outcome)); },
        [](void* call, const ServiceStatus& status) {
          static_cast<Call*>(call)->End(ToRpcStatus(status));
        },
        this);
  }

  void Answer(int index, v1::Outcome outcome) {
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
    GoOn(std::move(lock));
  }

  void Written(bool ok) {
    Lock lock(mutex_);
    writing_ = false;
    responses_.pop_front();
    if (!ok) cancelled_.store(true, std::memory_order_relaxed);
    GoOn(std::move(lock));
  }

  void Done(bool) {
    Lock lock(mutex_);
    done_ = true;
    if (context_.IsCancelled()) cancelled_.store(true, std::memory_order_relaxed);
    GoOn(std::move(lock));
  }

  void Finished(bool) {
    Lock lock(mutex_);
    finished_ = true;
    GoOn(std::move(lock));
  }

  // The caller must not touch the call any more.
  void GoOn(Lock lock) {
    WriteNext();
    if (status_ && !writing_ && !finishing_) {
      finishing_ = true;
      const std::chrono::duration<double> took = Clock::now() - arrival_;
      method_->context_.watch->Ended(Method::kStreamBatch, *status_, took.count(), context_,
                                     account_.get(), request_);
      stream_.Finish(*status_, &finished_tag_);
    }
    if (!finished_ || !done_) return;
    lock.unlock();
    method_->Remove(this);
    if (entered_) method_->context_.in_flight_calls->Leave();
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
  Engine::Expected expected_;
  Clock::time_point arrival_;
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  std::deque<v1::StreamBatchResponse> responses_;  // the first is being written, if any is
  std::optional<grpc::Status> status_;             // once all are answered
  bool writing_{false};
  Clock::time_point last_write_;
  bool finishing_{false};
  bool finished_{false};
  bool done_{false};
  bool entered_{false};  // counted among the open calls

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
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
