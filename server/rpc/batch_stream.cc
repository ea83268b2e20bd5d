#include "server/rpc/batch_stream.h"

#include <deque>
#include <utility>

#include "sap/v1/solver_service.pb.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/write_budget.h"
#include "server/server_identity.h"

namespace sap {

// One call. Arena threads append outcomes to a queue; one write is in progress at a time.
class BatchStream::Call final : public RequestCall {
 public:
  Call(BatchStream* method, grpc::ServerCompletionQueue* queue)
      : RequestCall(method, queue), method_(method) {}

 private:
  void AwaitNext() override { method_->Await(queue_); }
  ServiceStatus ParseRequest(grpc::ByteBuffer* bytes) override {
    return ParseMessage(method_->bounds_, bytes, &request_);
  }

  void Handle() override {
    // With the first outcome already: clients refuse servers whose bits could differ.
    context_.AddInitialMetadata("sap-server", ServerIdentity());
    services().handler->StartStreamBatch(
        request_, SolveContext(arrival_),
        [this](int index, v1::Outcome outcome) { AddOutcome(index, std::move(outcome)); },
        [](void* call, const ServiceStatus& status) { static_cast<Call*>(call)->End(status); },
        this);
  }

  void AddOutcome(int index, v1::Outcome outcome) {
    v1::StreamBatchResponse response;
    response.set_index(static_cast<uint32_t>(index));
    response.mutable_outcome()->Swap(&outcome);
    grpc::ByteBuffer bytes = Serialize(response);
    const Lock lock(mutex_);
    responses_.push_back(std::move(bytes));
    WriteNext();
  }

  // All problems are answered.
  void End(const ServiceStatus& status) {
    request_ = {};
    Answer(ToRpcStatus(status), 0);
  }

  void Written(bool ok) {
    Lock lock(mutex_);
    --pending_;
    writing_ = false;
    write_budget_.WriteCompleted(Clock::now(), responses_.front().Length());
    responses_.pop_front();
    if (!ok) cancelled_.store(true, std::memory_order_relaxed);
    Advance(std::move(lock));
  }

  bool Continue(Lock*) override { return WriteNext(), true; }

  void WriteNext() {
    if (writing_ || responses_.empty() || cancelled()) return;
    writing_ = true;
    ++pending_;
    write_budget_.WriteStarted(Clock::now());
    stream_.Write(responses_.front(), &written_tag_);
  }

  bool MayFinish() const override { return !writing_; }

  // The client has the write timeout for all answers together, and a second per megabyte.
  void CancelIfOverdue(Clock::time_point now) override {
    RequestCall::CancelIfOverdue(now);
    if (writing_ && write_budget_.IsExceeded(now, config().session.write_timeout_s)) {
      context_.TryCancel();
    }
  }

  BatchStream* const method_;
  v1::StreamBatchRequest request_;
  std::deque<grpc::ByteBuffer> responses_;  // the first one is being written if writing_
  bool writing_{false};
  WriteBudget write_budget_;

  MemberTag<Call> written_tag_{this, &Call::Written};
};

BatchStream::BatchStream(HeadersFirst* service, const ServiceContext& context)
    : RpcMethod({service, static_cast<int>(Method::kStreamBatch), context, Method::kStreamBatch}),
      bounds_(v1::StreamBatchRequest::descriptor(), context.handler->config()) {}

void BatchStream::Await(grpc::ServerCompletionQueue* queue) { (new Call(this, queue))->Await(); }

}  // namespace sap
