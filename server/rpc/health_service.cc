#include "server/rpc/health_service.h"

#include <atomic>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/completion_tag.h"

namespace sap {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Method indices in the schema.
constexpr int kCheck = 0;
constexpr int kWatch = 1;

bool IsKnown(const std::string& name) {
  return name.empty() || name == v1::SolverService::service_full_name();
}

}  // namespace

// One Watch stream. The status changes at most once, when the server drains, so the stream has at
// most two messages: the current status, and NOT_SERVING together with the end of the stream.
class HealthService::Watcher {
 public:
  Watcher(HealthService* owner, grpc::ServerCompletionQueue* queue)
      : owner_(owner), queue_(queue), stream_(&context_) {
    owner_->in_flight_calls_->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    owner_->service_.Request(kWatch, &context_, &stream_, queue, &accepted_tag_);
  }

  // Called once, with the owner's mutex held.
  void Drain() {
    if (!writing_) WriteLast();
  }

 private:
  void Accepted(bool ok) {
    if (!ok) return Delete();
    new Watcher(owner_, queue_);
    stream_.Read(&request_, &read_tag_);
  }

  void Read(bool ok) {
    {
      const std::lock_guard lock(owner_->mutex_);
      Begin(ok);
    }
    TagCompleted();
  }

  void Begin(bool ok) {
    if (!ok || gone_) return Finish();
    if (owner_->draining_) return WriteLast();
    if (owner_->watchers_.size() >= owner_->max_watchers_) {
      finishing_ = true;
      stream_.Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many Watch streams"},
                     &finished_tag_);
      return;
    }
    owner_->watchers_.insert(this);
    writing_ = true;
    response_.set_status(IsKnown(request_.service()) ? HealthCheckResponse::SERVING
                                                     : HealthCheckResponse::SERVICE_UNKNOWN);
    stream_.Write(response_, &written_tag_);
  }

  void Written(bool) {
    const std::lock_guard lock(owner_->mutex_);
    writing_ = false;
    if (gone_) {
      Finish();
    } else if (owner_->draining_) {
      WriteLast();
    }
  }

  // The client disconnected, or the stream ended.
  void Done(bool) {
    {
      const std::lock_guard lock(owner_->mutex_);
      gone_ = true;
      owner_->watchers_.erase(this);
      if (!writing_) Finish();
    }
    TagCompleted();
  }

  void Finished(bool) { TagCompleted(); }

  void WriteLast() {
    finishing_ = true;
    if (IsKnown(request_.service())) response_.set_status(HealthCheckResponse::NOT_SERVING);
    stream_.WriteAndFinish(response_, {}, ShuttingDown(), &finished_tag_);
  }

  void Finish() {
    if (finishing_) return;
    finishing_ = true;
    stream_.Finish(grpc::Status::CANCELLED, &finished_tag_);
  }

  void TagCompleted() {
    if (--open_tags_ == 0) Delete();
  }

  void Delete() {
    InFlightCalls* const in_flight_calls = owner_->in_flight_calls_;
    delete this;
    in_flight_calls->EndOnQueue();
  }

  HealthService* const owner_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  HealthCheckResponse response_;
  grpc::ServerAsyncReaderWriter<HealthCheckResponse, HealthCheckRequest> stream_;
  bool writing_{false};
  bool finishing_{false};
  bool gone_{false};
  std::atomic<int> open_tags_{3};  // read, done and finished

  MemberTag<Watcher> accepted_tag_{this, &Watcher::Accepted};
  MemberTag<Watcher> read_tag_{this, &Watcher::Read};
  MemberTag<Watcher> written_tag_{this, &Watcher::Written};
  MemberTag<Watcher> done_tag_{this, &Watcher::Done};
  MemberTag<Watcher> finished_tag_{this, &Watcher::Finished};
};

HealthService::HealthService(int max_watchers, InFlightCalls* in_flight_calls)
    : max_watchers_(max_watchers),
      in_flight_calls_(in_flight_calls),
      check_(
          &service_, kCheck, [this](CheckMethod::Call* call) { Check(call); }, in_flight_calls,
          /*authenticator=*/nullptr, CheckMethod::WhileDraining::kAnswered) {}

HealthService::~HealthService() = default;

void HealthService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) check_.Await(queue);
  new Watcher(this, queue);
}

void HealthService::Drain() {
  const std::lock_guard lock(mutex_);
  if (draining_) return;
  draining_ = true;
  for (Watcher* watcher : watchers_) watcher->Drain();
}

void HealthService::Check(CheckMethod::Call* call) {
  if (!IsKnown(call->request().service())) {
    return call->Finish({grpc::StatusCode::NOT_FOUND, "unknown service"});
  }
  const std::lock_guard lock(mutex_);
  call->response()->set_status(draining_ ? HealthCheckResponse::NOT_SERVING
                                         : HealthCheckResponse::SERVING);
  call->Finish(grpc::Status::OK);
}

}  // namespace sap
