#include "server/rpc/health_service.h"

#include <string>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/completion_tag.h"

namespace sap {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Method indices in the schema.
constexpr int kCheck = 0;
constexpr int kWatch = 1;

constexpr size_t kMaxLongReads = 4;
constexpr size_t kMaxReads = 256;
constexpr size_t kMaxChecks = 256;
// Longer messages have no known name.
constexpr size_t kMaxMessage_bytes = 1024;
// A short message is complete by then, unless packets are lost.
constexpr std::chrono::milliseconds kShortRead{50};
constexpr std::chrono::seconds kReadTimeout{1};
constexpr std::chrono::seconds kAnswerTimeout{5};

bool IsKnown(const std::string& name) {
  return name.empty() || name == v1::SolverService::service_full_name();
}

}  // namespace

// One Check or Watch. The owner's mutex guards all members. Another thread of the queue may handle
// the end of a call before its acceptance is handled; then the call ends with its acceptance.
class HealthService::Call {
 public:
  Call(HealthService* owner, grpc::ServerCompletionQueue* queue, int method)
      : owner_(owner), queue_(queue), method_(method), stream_(&context_) {
    owner_->in_flight_calls_->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    owner_->service_.Request(method_, &context_, &stream_, queue_, &accepted_tag_);
  }

  // Sends a Watch the current status, unless it is the last one sent.
  void SendStatus() {
    if (!received_ || writing_ || finishing_) return;
    const Status status = CurrentStatus();
    if (status == response_.status()) return;
    response_.set_status(status);
    since_ = Clock::now();
    writing_ = true;
    stream_.Write(response_, &written_tag_);
  }

  // The call ends as if the client had cancelled it.
  void CancelIfSince(Clock::time_point limit) {
    if (since_ < limit) Cancel();
  }
  Clock::time_point since() const { return since_; }
  void CancelIfWritingSince(Clock::time_point limit) {
    if (writing_) CancelIfSince(limit);
  }
  void Cancel() { context_.TryCancel(); }

  // Ends a Watch. While a write is in progress, no status can be sent.
  void Evict() {
    if (writing_) return Cancel();
    Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
            "too many Watch streams of this connection or address"});
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Accepted(bool ok) {
    if (!ok) return Delete();  // shutting down: the done tag will not complete
    new Call(owner_, queue_, method_);
    Lock lock(owner_->mutex_);
    accepted_ = true;
    since_ = Clock::now();
    if (done_) return Finish(grpc::Status::CANCELLED);
    if (method_ == kCheck) {
      owner_->checks_.push_back(this);
      if (owner_->checks_.size() > kMaxChecks) owner_->checks_.front()->Cancel();
    } else {
      owner_->AddWatcher(this, context_.peer());
      if (finishing_) return;
    }
    if (owner_->authenticator_->IsStranger(context_)) {
      known_ = received_ = true;
      return Answer();
    }
    owner_->reading_.push_back(this);
    owner_->CancelReads(since_);
    reading_ = true;
    stream_.Read(&bytes_, &read_tag_);
  }

  void Read(bool ok) {
    Lock lock(owner_->mutex_);
    reading_ = false;
    owner_->reading_.remove(this);
    if (!finishing_) {
      if (ok && CompareName()) {
        Answer();
      } else {
        Finish({grpc::StatusCode::INVALID_ARGUMENT, "the bytes are not a message"});
      }
    }
    Complete(std::move(lock));
  }

  // False: the bytes are no message.
  bool CompareName() {
    HealthCheckRequest request;
    const bool is_long = bytes_.Length() > kMaxMessage_bytes;
    if (!is_long &&
        !grpc::SerializationTraits<HealthCheckRequest>::Deserialize(&bytes_, &request).ok()) {
      return false;
    }
    bytes_.Clear();
    known_ = !is_long && IsKnown(request.service());
    received_ = true;
    return true;
  }

  void Answer() {
    if (method_ == kWatch) return SendStatus();
    if (!known_) return Finish({grpc::StatusCode::NOT_FOUND, "unknown service"});
    response_.set_status(CurrentStatus());
    finishing_ = true;
    stream_.WriteAndFinish(response_, {}, grpc::Status::OK, &finished_tag_);
  }

  Status CurrentStatus() const {
    if (!known_) return HealthCheckResponse::SERVICE_UNKNOWN;
    return owner_->draining_ ? HealthCheckResponse::NOT_SERVING : HealthCheckResponse::SERVING;
  }

  void Written(bool) {
    Lock lock(owner_->mutex_);
    writing_ = false;
    if (done_) {
      Finish(grpc::Status::CANCELLED);
    } else {
      SendStatus();
    }
    Complete(std::move(lock));
  }

  // The client disconnected or cancelled, the server shuts down, or the call ended.
  void Done(bool) {
    Lock lock(owner_->mutex_);
    done_ = true;
    if (accepted_ && !writing_) Finish(grpc::Status::CANCELLED);
    Complete(std::move(lock));
  }

  void Finished(bool) {
    Lock lock(owner_->mutex_);
    finished_ = true;
    Complete(std::move(lock));
  }

  void Finish(const grpc::Status& status) {
    if (finishing_) return;
    finishing_ = true;
    stream_.Finish(status, &finished_tag_);
  }

  // Deletes `this` once no operation is left. Do not use the call afterwards.
  void Complete(Lock lock) {
    if (!done_ || !finished_ || reading_ || writing_) return;
    if (method_ == kCheck) {
      owner_->checks_.remove(this);
    } else {
      owner_->RemoveWatcher(this);
    }
    lock.unlock();
    Delete();
  }

  void Delete() {
    InFlightCalls* const in_flight_calls = owner_->in_flight_calls_;
    delete this;
    in_flight_calls->EndOnQueue();
  }

  HealthService* const owner_;
  grpc::ServerCompletionQueue* const queue_;
  const int method_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;
  HealthCheckResponse response_;
  grpc::ServerAsyncReaderWriter<HealthCheckResponse, grpc::ByteBuffer> stream_;
  Clock::time_point since_;  // acceptance, or start of the write of a Watch
  bool accepted_{false};
  bool known_{false};
  bool received_{false};
  bool reading_{false};
  bool writing_{false};
  bool finishing_{false};
  bool finished_{false};
  bool done_{false};

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> written_tag_{this, &Call::Written};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

void HealthService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) new Call(this, queue, kCheck);
  new Call(this, queue, kWatch);
}

void HealthService::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  watchers_.ForEach([](Call* watcher) { watcher->SendStatus(); });
}

void HealthService::AddWatcher(Call* watcher, const std::string& peer) {
  if (Call* const evicted = watchers_.Add(watcher, peer); evicted != nullptr) {
    evicted->Evict();
    observer_.WatchRefused();
  }
  observer_.WatchesOpen(watchers_.size());
}

void HealthService::RemoveWatcher(Call* watcher) {
  watchers_.Remove(watcher);
  observer_.WatchesOpen(watchers_.size());
}

void HealthService::CancelReads(Clock::time_point now) {
  const auto is_over_limit = [&] {
    return reading_.size() > kMaxReads ||
           (reading_.size() > kMaxLongReads && reading_.front()->since() < now - kShortRead);
  };
  while (is_over_limit()) {
    reading_.front()->Cancel();
    reading_.pop_front();
  }
}

void HealthService::Sweep() {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  CancelReads(now);
  for (Call* call : reading_) call->CancelIfSince(now - kReadTimeout);
  for (Call* call : checks_) call->CancelIfSince(now - kAnswerTimeout);
  watchers_.ForEach([&](Call* call) { call->CancelIfWritingSince(now - kAnswerTimeout); });
}

}  // namespace sap
