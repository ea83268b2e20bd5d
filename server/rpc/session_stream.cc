#include "server/rpc/session_stream.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/rpc/message_bytes.h"
#include "server/rpc/rpc_status.h"
#include "server/server_identity.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

// Larger requests are followed by an early read, see ShouldReadAhead.
constexpr size_t kReadAheadThreshold_bytes = 64 << 10;

// A queue with more streams than this, and than twice those of another queue, has many.
constexpr int kFewStreams = 4;

ServiceStatus RefuseMessage(const v1::SolveSessionRequest& request, bool is_first) {
  switch (request.request_case()) {
    case v1::SolveSessionRequest::kOpen:
      if (is_first) return {};
      return RefuseField("open", "is sent a second time; only the first message opens the session");
    case v1::SolveSessionRequest::kStep:
      if (!is_first) return {};
      return RefuseField("open", "is missing; the first message must open the session");
    case v1::SolveSessionRequest::REQUEST_NOT_SET:
      break;
  }
  return RefuseField("request", "is missing; every message must be `open` or `step`");
}

}  // namespace

// One stream. At most one read, one write and one step are in progress at a time. The step uses its
// slot, the session and what is constant without the lock.
class SessionStream::Call final : public ServerCall {
 public:
  Call(SessionStream* method, grpc::ServerCompletionQueue* queue)
      : ServerCall(method, queue), method_(method) {
    reported_at_end_ = true;
  }

  void Drain() {
    const Lock lock(mutex_);
    EndWith(ShuttingDown());
    FinishIfPossible();
  }

 private:
  // A step and its answer.
  struct Slot {
    v1::SolveSessionRequest request;
    v1::SolveSessionResponse response;
    Clock::time_point arrival;
    std::unique_ptr<CallTrace> trace;
    int64_t held_bytes{0};                  // of the request, then of the answer that is being sent
    std::optional<ServiceError> refused{};  // the step did not fit into the limits on bytes
  };

  void AwaitNext() override { method_->Accepted(queue_); }
  void Begin() override;
  bool Continue(Lock* lock) override;
  bool MayFinish() const override;
  void CancelIfOverdue(Clock::time_point now) override;
  void OnCancelled() override { EndWith(grpc::Status::CANCELLED); }
  grpc::Status StatusAtEnd() override {
    return cancelled() ? grpc::Status::CANCELLED : *end_status_;
  }
  void AtEnd() override;

  void Read(bool ok);
  void ReadMessage(bool ok);
  void Solved();
  void Written(bool ok);

  void AcceptMessage(int64_t bytes);
  void Open(const v1::OpenSession& open);
  void HoldStep(Slot* slot, int64_t bytes);
  void SetHeldBytes(Slot* slot, int64_t bytes);
  void EndStep();
  bool StartStep();
  void ReadNext();
  void WriteNext();

  bool CanSolve() const { return !solving_ && answered_ < accepted_ && !cancelled(); }
  // Whether to read the next step before this one is solved. A read makes gRPC acknowledge received
  // data with a packet of its own, which costs more than a short step gains.
  bool ShouldReadAhead() {
    return SlotOf(answered_).request.ByteSizeLong() > kReadAheadThreshold_bytes;
  }
  Slot& SlotOf(uint64_t step) { return slots_[step % slots_.size()]; }
  int MaxStepsInFlight() const { return config().session.max_steps_in_flight; }

  SessionStream* const method_;
  grpc::ByteBuffer received_;   // by the read in progress
  uint64_t tokens_version_{0};  // see Authenticator::IsStillValid
  std::unique_ptr<Session> session_;
  Clock::time_point leave_time_{Clock::time_point::max()};  // from then on the client is to move

  // Message counts. Message 0 opens the session, the others are steps.
  uint64_t accepted_{0};  // read and valid
  uint64_t answered_{0};  // answer available
  uint64_t sent_{0};      // answer written
  std::vector<Slot> slots_;
  int64_t held_bytes_{0};  // by all slots
  bool reading_{false};
  bool solving_{false};
  bool writing_{false};
  Clock::time_point last_activity_;
  Clock::time_point write_start_;  // of the write in progress

  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> written_tag_{this, &Call::Written};
};

void SessionStream::Call::Begin() {
  last_activity_ = arrival_;
  leave_time_ = method_->NextLeaveTime(arrival_);
  slots_.resize(MaxStepsInFlight());
  LetIn();
}

void SessionStream::Call::Read(bool ok) {
  if (!ok) return ReadMessage(false);
  Parse(received_.Length(), [](void* call) { static_cast<Call*>(call)->ReadMessage(true); });
}

void SessionStream::Call::ReadMessage(bool ok) {
  Lock lock(mutex_);
  // Until it is accepted, the slot of the next message belongs to the read.
  Slot& slot = SlotOf(accepted_);
  lock.unlock();
  const auto bytes = static_cast<int64_t>(received_.Length());
  ServiceStatus parsed;
  if (ok) parsed = ParseMessage(method_->bounds_, &received_, &slot.request);
  lock.lock();
  reading_ = false;
  --pending_;
  last_activity_ = Clock::now();
  if (!ok) {
    EndWith(accepted_ > 0 ? grpc::Status::OK
                          : ToRpcStatus(RefuseField("open", "is missing; nothing was sent")));
  } else if (!parsed) {
    EndWith(ToRpcStatus(parsed));
  } else if (!end_status_) {
    AcceptMessage(bytes);
  }
  Advance(std::move(lock));
}

void SessionStream::Call::AcceptMessage(int64_t bytes) {
  Slot& slot = SlotOf(accepted_);
  slot.arrival = last_activity_;
  if (const ServiceStatus refused = RefuseMessage(slot.request, accepted_ == 0); !refused) {
    return EndWith(ToRpcStatus(refused));
  }
  if (accepted_ == 0) {
    Open(slot.request.open());
    slot.request.Clear();
  } else {
    HoldStep(&slot, bytes);
  }
  if (!end_status_) ++accepted_;
}

// Counts the step against the limits on bytes. If it does not fit, it fails in its turn, and its
// problem is freed at once.
void SessionStream::Call::HoldStep(Slot* slot, int64_t bytes) {
  const ServiceStatus held =
      services().handler->admission().HoldBytes(account_.get(), bytes, held_bytes_);
  if (held) {
    slot->held_bytes = bytes;
    held_bytes_ += bytes;
    return;
  }
  slot->refused = held.error();
  const uint64_t step_id = slot->request.step().step_id();
  slot->request = {};
  slot->request.mutable_step()->set_step_id(step_id);
}

void SessionStream::Call::SetHeldBytes(Slot* slot, int64_t bytes) {
  const int64_t more = bytes - slot->held_bytes;
  slot->held_bytes = bytes;
  held_bytes_ += more;
  services().handler->admission().AddBytes(account_.get(), more);
}

void SessionStream::Call::Open(const v1::OpenSession& open) {
  auto session = services().handler->NewSession(account_.get());
  if (!session) return Reject(ToRpcStatus(tl::unexpected(session.error())));
  if (const ServiceStatus checked = (*session)->Open(open); !checked) {
    return EndWith(ToRpcStatus(checked));
  }
  session_ = std::move(*session);
  v1::SessionOpened* opened = SlotOf(0).response.mutable_opened();
  opened->set_max_steps_in_flight(MaxStepsInFlight());
  opened->set_low_latency(session_->low_latency());
  opened->set_server(ServerIdentity());
  answered_ = 1;
}

// Reports the answer of the step, and frees the step. Without the lock, for which reads and writes
// of the stream would wait: the slot is the step's until it counts as answered.
void SessionStream::Call::EndStep() {
  Slot& slot = SlotOf(answered_);
  const v1::Failure& failure = slot.response.step().outcome().failure();
  const std::chrono::duration<double> took = Clock::now() - slot.arrival;
  services().observer->StepEnded({.method = Method::kSolveSession,
                                  .code = failure.code(),
                                  .message = failure.message(),
                                  .duration_s = took.count(),
                                  .context = &context_,
                                  .id = &request_id_,
                                  .account = account_.get(),
                                  .trace = slot.trace.get()},
                                 slot.request, slot.response.step().step_id());
  slot.trace.reset();
  slot.request.Clear();
}

void SessionStream::Call::CancelIfOverdue(Clock::time_point now) {
  const SessionConfig& limits = config().session;
  const std::chrono::duration<double> writing = now - write_start_;
  const std::chrono::duration<double> idle = now - last_activity_;
  const bool is_unopened = !end_status_ && accepted_ == 0;
  if (!end_status_ &&
      !services().authenticator->IsStillValid(context_, account_.get(), &tokens_version_)) {
    EndWith(ToRpcStatus(tl::unexpected(
        ServiceError{ServiceCode::kUnauthenticated, "the bearer token is no longer valid", ""})));
    FinishIfPossible();
  } else if ((writing_ && writing.count() > limits.write_timeout_s) ||
             (is_unopened && idle.count() > config().read_timeout_s)) {
    // After TryCancel the write completes with an error and the stream ends as if the client had
    // disconnected. Any other status would wait behind the answer.
    context_.TryCancel();
  } else if (!end_status_ && !solving_ && accepted_ == sent_ && idle.count() > limits.idle_s) {
    services().observer->SessionExpired();
    EndWith(ToRpcStatus(tl::unexpected(ServiceError{
        ServiceCode::kAborted,
        "the session was idle for longer than the server allows; open a new one", ""})));
    FinishIfPossible();
  }
}

bool SessionStream::Call::Continue(Lock* lock) {
  // While a write is in progress, a thread solves steps of one stream for at most the inline limit;
  // then other streams are served until the write completes.
  const std::chrono::duration<double, std::micro> inline_budget(config().inline_below_us);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(inline_budget);
  if (!CanSolve() || ShouldReadAhead()) ReadNext();
  WriteNext();
  while (CanSolve() && (!writing_ || Clock::now() < until)) {
    solving_ = true;
    ++pending_;
    lock->unlock();
    // False: Solved() will call Advance, and the call may already be deleted.
    if (!StartStep()) return false;
    EndStep();
    lock->lock();
    solving_ = false;
    --pending_;
    ++answered_;
    WriteNext();
    ReadNext();
  }
  return true;
}

void SessionStream::Call::AtEnd() {
  if (held_bytes_ > 0) services().handler->admission().AddBytes(account_.get(), -held_bytes_);
  session_.reset();  // before the call stops counting: a drained server has no session
  method_->Ended(queue_);
}

bool SessionStream::Call::StartStep() {
  Slot& slot = SlotOf(answered_);
  CallContext call = SolveContext(slot.arrival);
  slot.trace = trace_ == nullptr ? nullptr : std::make_unique<CallTrace>(trace_->parent());
  call.trace = slot.trace.get();
  v1::StepOutcome* outcome = slot.response.mutable_step();
  if (slot.refused) {
    session_->RefuseStep(slot.request.step(), call, *slot.refused, outcome);
    slot.refused.reset();
    return true;
  }
  return session_->StartStep(
      slot.request.step(), call, outcome, [](void* call) { static_cast<Call*>(call)->Solved(); },
      this);
}

void SessionStream::Call::Solved() {
  EndStep();
  Lock lock(mutex_);
  solving_ = false;
  --pending_;
  ++answered_;
  Advance(std::move(lock));
}

void SessionStream::Call::ReadNext() {
  if (reading_ || end_status_ || accepted_ - sent_ == slots_.size()) return;
  // At a limit on bytes the client waits in the transport until one of its answers is sent.
  if (accepted_ > sent_ && services().handler->admission().IsFull(*account_)) return;
  reading_ = true;
  ++pending_;
  stream_.Read(&received_, &read_tag_);
}

void SessionStream::Call::WriteNext() {
  if (writing_ || sent_ == answered_ || cancelled()) return;
  writing_ = true;
  ++pending_;
  write_start_ = Clock::now();
  Slot& slot = SlotOf(sent_);
  v1::SolveSessionResponse& response = slot.response;
  response.set_credits(services().handler->queue().backlogged() ? 1 : MaxStepsInFlight());
  response.set_draining(method_->drain_announced_.load(std::memory_order_relaxed) ||
                        write_start_ >= leave_time_);
  const grpc::ByteBuffer bytes = Serialize(response);
  stream_.Write(bytes, &written_tag_);
  SetHeldBytes(&slot, static_cast<int64_t>(bytes.Length()));
  if (static_cast<int64_t>(bytes.Length()) > kMaxKeptAnswer_bytes) response.Clear();
}

void SessionStream::Call::Written(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  --pending_;
  last_activity_ = Clock::now();
  if (ok) {
    SetHeldBytes(&SlotOf(sent_), 0);
    ++sent_;
  } else {
    cancelled_.store(true, std::memory_order_relaxed);
    EndWith(grpc::Status::CANCELLED);
  }
  Advance(std::move(lock));
}

// A read may still be in progress; it completes when the stream has ended.
bool SessionStream::Call::MayFinish() const {
  return !solving_ && !writing_ && (cancelled() || sent_ == accepted_);
}

SessionStream::SessionStream(HeadersFirst* service, const ServiceContext& context)
    : RpcMethod({service, static_cast<int>(Method::kSolveSession), context, Method::kSolveSession}),
      bounds_(v1::SolveSessionRequest::descriptor(), context.handler->config()) {}

// Spread over a fifth of the age, so that sessions that were opened together move one by one.
Clock::time_point SessionStream::NextLeaveTime(Clock::time_point opened) {
  const double age_s = context().handler->config().connection.age_s;
  if (age_s <= 0) return Clock::time_point::max();
  constexpr double kGoldenRatio = 0.6180339887498949;
  double whole = 0;
  const double part = std::modf(
      static_cast<double>(opened_.fetch_add(1, std::memory_order_relaxed)) * kGoldenRatio, &whole);
  const std::chrono::duration<double> age(age_s * (0.9 + 0.2 * part));
  return opened + std::chrono::duration_cast<Clock::duration>(age);
}

void SessionStream::Await(grpc::ServerCompletionQueue* queue) {
  {
    const std::lock_guard lock(queues_mutex_);
    if (std::ranges::find(queues_, queue, &Queue::queue) == queues_.end()) {
      queues_.push_back({queue});
    }
  }
  (new Call(this, queue))->Await();
}

void SessionStream::Accepted(grpc::ServerCompletionQueue* queue) {
  grpc::ServerCompletionQueue* next = queue;
  {
    const std::lock_guard lock(queues_mutex_);
    const auto own = std::ranges::find(queues_, queue, &Queue::queue);
    const auto least = std::ranges::min_element(queues_, {}, &Queue::streams);
    ++own->streams;
    if (own->streams > 2 * least->streams + kFewStreams) next = least->queue;
  }
  (new Call(this, next))->Await();
}

void SessionStream::Ended(grpc::ServerCompletionQueue* queue) {
  const std::lock_guard lock(queues_mutex_);
  --std::ranges::find(queues_, queue, &Queue::queue)->streams;
}

void SessionStream::Drain() {
  ForEachCall([](ServerCall* call) { static_cast<Call*>(call)->Drain(); });
}

}  // namespace sap
