#include "server/rpc/health_service.h"

#include <string>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/message_transfers.h"

namespace sap {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr size_t kMaxLongReads = 4;
constexpr size_t kMaxReads = 256;
constexpr size_t kMaxChecks = 256;
// Longer messages have no known name.
constexpr size_t kMaxMessage_bytes = 1024;
constexpr std::chrono::seconds kReadTimeout{1};
constexpr std::chrono::seconds kAnswerTimeout{5};

bool IsKnown(const std::string& name) {
  return name.empty() || name == v1::SolverService::service_full_name();
}

}  // namespace

// One Check or Watch. All calls share the owner's mutex, since they end one another.
class HealthService::Call final : public ServerCall {
 public:
  Call(HealthService* owner, HealthMethod* method, grpc::ServerCompletionQueue* queue)
      : ServerCall(method, queue, &owner->mutex_), owner_(owner), health_method_(method) {}

  // Sends a Watch the current status, unless it is the last one sent.
  void SendStatus() {
    if (!received_ || writing_ || end_status_) return;
    const Status status = CurrentStatus();
    if (status == response_.status()) return;
    response_.set_status(status);
    since_ = Clock::now();
    writing_ = true;
    ++pending_;
    stream_.Write(Serialize(response_), &written_tag_);
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
    EndWith({grpc::StatusCode::RESOURCE_EXHAUSTED,
             "too many Watch streams of this connection or address"});
    FinishIfPossible();
  }

 private:
  bool IsCheck() const { return method_->description().index == kCheck; }

  void AwaitNext() override { owner_->Await(queue_, health_method_); }

  void Begin() override {
    since_ = arrival_;
    if (end_status_) return;  // it has been cancelled
    if (IsCheck()) {
      owner_->checks_.push_back(this);
      if (owner_->checks_.size() > kMaxChecks) owner_->checks_.front()->Cancel();
    } else {
      owner_->AddWatcher(this, context_.peer());
      if (end_status_) return;
    }
    if (owner_->authenticator_->IsStranger(context_)) {
      known_ = received_ = true;
      return Answer();
    }
    owner_->reading_.push_back(this);
    owner_->CancelReads(since_);
    ++pending_;
    stream_.Read(&bytes_, &read_tag_);
  }

  void OnCancelled() override { EndWith(grpc::Status::CANCELLED); }
  bool MayFinish() const override { return !writing_; }

  void Read(bool ok) {
    Lock lock(mutex_);
    --pending_;
    owner_->reading_.remove(this);
    if (end_status_) {
      // It has been cancelled or evicted.
    } else if (ok && CompareName()) {
      Answer();
    } else {
      EndWith({grpc::StatusCode::INVALID_ARGUMENT, "the bytes are not a message"});
    }
    Advance(std::move(lock));
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
    if (!IsCheck()) return SendStatus();
    if (!known_) return EndWith({grpc::StatusCode::NOT_FOUND, "unknown service"});
    response_.set_status(CurrentStatus());
    last_message_ = Serialize(response_);
    EndWith(grpc::Status::OK);
  }

  Status CurrentStatus() const {
    if (!known_) return HealthCheckResponse::SERVICE_UNKNOWN;
    return owner_->draining_ ? HealthCheckResponse::NOT_SERVING : HealthCheckResponse::SERVING;
  }

  void Written(bool) {
    Lock lock(mutex_);
    --pending_;
    writing_ = false;
    SendStatus();
    Advance(std::move(lock));
  }

  void AtEnd() override {
    const Lock lock(mutex_);
    if (IsCheck()) {
      owner_->checks_.remove(this);
    } else {
      owner_->RemoveWatcher(this);
    }
  }

  HealthService* const owner_;
  HealthMethod* const health_method_;
  grpc::ByteBuffer bytes_;
  HealthCheckResponse response_;
  Clock::time_point since_;  // acceptance, or start of the write of a Watch
  bool known_{false};
  bool received_{false};
  bool writing_{false};

  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> written_tag_{this, &Call::Written};
};

void HealthService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) Await(queue, &check_);
  Await(queue, &watch_);
}

void HealthService::Await(grpc::ServerCompletionQueue* queue, HealthMethod* method) {
  (new Call(this, method, queue))->Await();
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
