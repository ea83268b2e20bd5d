#include "server/rpc/session_stream.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/rpc/completion_tag.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/unary_call.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

// Larger requests are freed once they are answered.
constexpr size_t kMaxRetained_bytes = 4 << 20;
// Larger requests are followed by an early read, see ShouldReadAhead.
constexpr size_t kReadAheadThreshold_bytes = 64 << 10;

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

// One stream. The mutex guards all members except those that the running step uses. At most one
// read, one write and one step are in progress at a time; each completed operation calls Advance.
class SessionStream::Call final : public SessionClaimant, public SessionHolder {
 public:
  Call(SessionStream* method, grpc::ServerCompletionQueue* queue)
      : method_(method), queue_(queue), stream_(&context_) {
    method_->context_.in_flight_calls->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    method_->service_->Request(static_cast<int>(Method::kSolveSession), &context_, &stream_, queue,
                               &accepted_tag_);
  }

  // Called once, while the call is registered.
  void Drain() {
    const std::lock_guard lock(mutex_);
    EndWith(ShuttingDown());
    FinishIfAnswered();
  }

  // Called periodically while the call is registered.
  void Sweep(Clock::time_point now);

  void Resume(std::unique_ptr<DetachedSession> detached) override;
  // Another stream claims this session: cancels the stream, which completes its operations.
  void GiveUp() override { context_.TryCancel(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // A step and its answer; storage is reused by later steps.
  struct Slot {
    v1::SolveSessionRequest request;
    v1::SolveSessionResponse response;
    Clock::time_point arrival;
  };

  void Accepted(bool ok);
  void Read(bool ok);
  void Solved();
  void Written(bool ok);
  void Done(bool ok);
  void Finished(bool ok);

  void AcceptMessage();
  void OpenOrClaim(const v1::OpenSession& open);
  void SetOpened(v1::SessionOpened* opened);
  bool ReplayOutcome(const v1::SessionStep& step, v1::StepOutcome* outcome);
  void RecordAnswer();
  std::unique_ptr<DetachedSession> DetachSession();
  void Advance(Lock lock);
  bool StartStep();
  void ReadNext();
  void WriteNext();
  void FinishIfAnswered();
  void Delete();

  // Accepts no more steps; the stream ends with the status once the accepted ones are answered.
  void EndWith(const grpc::Status& status) {
    if (!end_status_) end_status_ = status;
  }
  void Cancel() {
    cancelled_.store(true, std::memory_order_relaxed);
    EndWith(grpc::Status::CANCELLED);
  }
  bool CanSolve() const { return !solving_ && answered_ < accepted_ && !Cancelled(); }
  // Whether to read the next step before this one is solved. A read makes gRPC acknowledge received
  // data with a packet of its own, which costs more than a short step gains.
  bool ShouldReadAhead() {
    return SlotOf(answered_).request.ByteSizeLong() > kReadAheadThreshold_bytes;
  }
  bool Cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  Slot& SlotOf(uint64_t step) { return slots_[step % slots_.size()]; }
  int MaxStepsInFlight() const {
    return method_->context_.engine->config().session.max_steps_in_flight;
  }

  SessionStream* const method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1::SolveSessionResponse, v1::SolveSessionRequest> stream_;
  std::shared_ptr<ClientAccount> account_;
  std::unique_ptr<Session> session_;
  std::string token_;                              // resume token; empty: not resumable
  bool claiming_{false};                           // waits for the session of the token
  std::vector<v1::StepOutcome> earlier_outcomes_;  // of a resumed session, until a new step
  Clock::time_point arrival_;
  Clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  // Message counts. Message 0 opens the session, the others are steps.
  uint64_t accepted_{0};  // read and valid
  uint64_t answered_{0};  // answer available
  uint64_t sent_{0};      // answer written
  std::vector<Slot> slots_;
  bool reading_{false};
  bool solving_{false};
  bool writing_{false};
  std::optional<grpc::Status> end_status_;  // set once no more steps are accepted
  bool finishing_{false};
  bool finished_{false};
  bool done_{false};
  Clock::time_point last_activity_;

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> written_tag_{this, &Call::Written};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

void SessionStream::Call::Accepted(bool ok) {
  if (!ok) return Delete();  // shutting down: the done tag will not complete
  method_->Await(queue_);
  method_->context_.observer->Started(Method::kSolveSession);
  Lock lock(mutex_);
  arrival_ = last_activity_ = Clock::now();
  deadline_ = SteadyDeadline(context_);
  slots_.resize(MaxStepsInFlight());
  const bool entered = method_->context_.in_flight_calls->Enter();
  auto account = method_->context_.authenticator->Identify(context_);
  if (account) account_ = std::move(*account);
  if (!entered) {
    EndWith(ShuttingDown());
  } else if (account_ == nullptr) {
    EndWith(ToRpcStatus(tl::unexpected(account.error())));
  } else {
    lock.unlock();
    const bool added = method_->Add(this);
    lock.lock();
    if (!added) EndWith(ShuttingDown());
  }
  Advance(std::move(lock));
}

void SessionStream::Call::Read(bool ok) {
  Lock lock(mutex_);
  reading_ = false;
  last_activity_ = Clock::now();
  if (!ok) {
    EndWith(accepted_ > 0 ? grpc::Status::OK
                          : ToRpcStatus(RefuseField("open", "is missing; nothing was sent")));
  } else if (!end_status_) {
    AcceptMessage();
  }
  if (!claiming_) return Advance(std::move(lock));
  // Until Resume is called nothing else may happen on this stream, so the claim counts as a running
  // step.
  claiming_ = false;
  solving_ = true;
  lock.unlock();
  method_->detached_sessions_.Claim(token_, account_->name(), this);
}

void SessionStream::Call::AcceptMessage() {
  Slot& slot = SlotOf(accepted_);
  slot.arrival = last_activity_;
  if (const ServiceStatus refused = RefuseMessage(slot.request, accepted_ == 0); !refused) {
    return EndWith(ToRpcStatus(refused));
  }
  if (accepted_ == 0) OpenOrClaim(slot.request.open());
  if (!end_status_) ++accepted_;
}

void SessionStream::Call::OpenOrClaim(const v1::OpenSession& open) {
  if (!open.resume_token().empty()) {
    token_ = open.resume_token();
    claiming_ = true;
    return;
  }
  auto session = method_->NewSession();
  if (!session) return EndWith(ToRpcStatus(tl::unexpected(session.error())));
  if (const ServiceStatus opened = (*session)->Open(open); !opened) {
    return EndWith(ToRpcStatus(opened));
  }
  session_ = std::move(*session);
  if (open.resumable() && method_->detached_sessions_.keeps()) {
    token_ = DetachedSessions::NewToken();
    method_->detached_sessions_.Hold(token_, this);
  }
  SetOpened(SlotOf(0).response.mutable_opened());
  answered_ = 1;
}

void SessionStream::Call::SetOpened(v1::SessionOpened* opened) {
  opened->set_max_steps_in_flight(MaxStepsInFlight());
  opened->set_low_latency(session_->low_latency());
  opened->set_resume_token(token_);
  if (!token_.empty()) {
    opened->set_resume_within_s(method_->context_.engine->config().session.resume_s);
  }
}

void SessionStream::Call::Resume(std::unique_ptr<DetachedSession> detached) {
  Lock lock(mutex_);
  solving_ = false;
  if (detached == nullptr) {
    token_.clear();
    EndWith(ToRpcStatus(tl::unexpected(ServiceError{
        ServiceCode::kFailedPrecondition,
        "there is no such session to resume; open a new one and send the steps again", ""})));
    // The `open` message has no answer.
    accepted_ = 0;
    return Advance(std::move(lock));
  }
  session_ = std::move(detached->session);
  earlier_outcomes_ = std::move(detached->outcomes);
  method_->detached_sessions_.Hold(token_, this);
  method_->context_.observer->SessionResumed();
  v1::SessionOpened* opened = SlotOf(0).response.mutable_opened();
  SetOpened(opened);
  if (const auto last = session_->last_step_id()) opened->set_last_step_id(*last);
  answered_ = 1;
  Advance(std::move(lock));
}

// A step that was answered before the connection was lost has the same outcome again.
bool SessionStream::Call::ReplayOutcome(const v1::SessionStep& step, v1::StepOutcome* outcome) {
  for (const v1::StepOutcome& earlier : earlier_outcomes_) {
    if (earlier.step_id() != step.step_id()) continue;
    *outcome = earlier;
    return true;
  }
  return false;
}

// The state to keep for a resumable session that lost its client, or null.
std::unique_ptr<DetachedSession> SessionStream::Call::DetachSession() {
  if (token_.empty() || session_ == nullptr || !Cancelled()) return nullptr;
  auto detached = std::make_unique<DetachedSession>();
  // The slots hold the last answers, as many as the client may not have received.
  const uint64_t first = answered_ > slots_.size() ? answered_ - slots_.size() : 1;
  for (const v1::StepOutcome& outcome : earlier_outcomes_) detached->outcomes.push_back(outcome);
  for (uint64_t i = std::max<uint64_t>(first, 1); i < answered_; ++i) {
    v1::StepOutcome* outcome = SlotOf(i).response.mutable_step();
    // A cancelled or expired step has no outcome.
    if (IsAbandoned(static_cast<ServiceCode>(outcome->outcome().failure().code()))) continue;
    detached->outcomes.push_back(std::move(*outcome));
  }
  detached->session = std::move(session_);
  detached->client = account_->name();
  return detached;
}

void SessionStream::Call::RecordAnswer() {
  const Slot& slot = SlotOf(answered_);
  const v1::Failure& failure = slot.response.step().outcome().failure();
  const std::chrono::duration<double> took = Clock::now() - slot.arrival;
  method_->context_.observer->StepEnded(failure.code(), failure.message(), took.count(), context_,
                                        account_.get(), slot.request,
                                        slot.response.step().step_id());
  ++answered_;
}

void SessionStream::Call::Sweep(Clock::time_point now) {
  const SessionConfig& config = method_->context_.engine->config().session;
  Lock lock(mutex_);
  const std::chrono::duration<double> elapsed = now - last_activity_;
  if (writing_ && elapsed.count() > config.write_timeout_s) {
    // After TryCancel the write completes with an error and the stream ends as if the client had
    // disconnected.
    context_.TryCancel();
  } else if (!end_status_ && !solving_ && accepted_ == sent_ && elapsed.count() > config.idle_s) {
    method_->context_.observer->SessionExpired();
    EndWith(ToRpcStatus(tl::unexpected(ServiceError{
        ServiceCode::kAborted,
        "the session was idle for longer than the server allows; open a new one", ""})));
    FinishIfAnswered();
  }
}

// Advances the stream's state machine; deletes `this` when it is complete. Do not use the call
// afterwards.
void SessionStream::Call::Advance(Lock lock) {
  // While a write is in progress, a thread solves steps of one stream for at most the inline limit;
  // then other streams are served until the write completes.
  const std::chrono::duration<double, std::micro> inline_budget(
      method_->context_.engine->config().inline_below_us);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(inline_budget);
  if (!CanSolve() || ShouldReadAhead()) ReadNext();
  WriteNext();
  while (CanSolve() && (!writing_ || Clock::now() < until)) {
    solving_ = true;
    lock.unlock();
    // False: Solved() will call Advance, and the call may already be deleted.
    if (!StartStep()) return;
    lock.lock();
    solving_ = false;
    RecordAnswer();
    WriteNext();
    ReadNext();
  }
  FinishIfAnswered();
  if (!finished_ || !done_ || reading_ || solving_ || writing_) return;
  const grpc::Status& status = Cancelled() ? grpc::Status::CANCELLED : *end_status_;
  const std::chrono::duration<double> took = Clock::now() - arrival_;
  method_->context_.observer->Ended(Method::kSolveSession, status, took.count(), context_,
                                    account_.get(), /*request_bytes=*/0);
  std::unique_ptr<DetachedSession> detached = DetachSession();
  lock.unlock();
  method_->Remove(this);
  if (detached != nullptr) {
    method_->detached_sessions_.Keep(token_, std::move(detached));
  } else if (!token_.empty()) {
    method_->detached_sessions_.Forget(token_);
  }
  method_->context_.in_flight_calls->Leave();
  Delete();
}

void SessionStream::Call::Delete() {
  InFlightCalls* const in_flight_calls = method_->context_.in_flight_calls;
  delete this;
  in_flight_calls->EndOnQueue();
}

bool SessionStream::Call::StartStep() {
  Slot& slot = SlotOf(answered_);
  if (!earlier_outcomes_.empty()) {
    if (ReplayOutcome(slot.request.step(), slot.response.mutable_step())) return true;
    earlier_outcomes_.clear();
  }
  return session_->StartStep(
      slot.request.step(), {slot.arrival, deadline_, &cancelled_, account_.get()},
      slot.response.mutable_step(), [](void* call) { static_cast<Call*>(call)->Solved(); }, this);
}

void SessionStream::Call::Solved() {
  Lock lock(mutex_);
  solving_ = false;
  RecordAnswer();
  Advance(std::move(lock));
}

void SessionStream::Call::ReadNext() {
  if (reading_ || end_status_ || accepted_ - sent_ == slots_.size()) return;
  reading_ = true;
  stream_.Read(&SlotOf(accepted_).request, &read_tag_);
}

void SessionStream::Call::WriteNext() {
  if (writing_ || sent_ == answered_ || Cancelled()) return;
  writing_ = true;
  v1::SolveSessionResponse& response = SlotOf(sent_).response;
  response.set_credits(method_->context_.engine->queue().backlogged() ? 1 : MaxStepsInFlight());
  response.set_draining(method_->drain_announced_.load(std::memory_order_relaxed));
  stream_.Write(response, &written_tag_);
}

void SessionStream::Call::Written(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  last_activity_ = Clock::now();
  v1::SolveSessionRequest& request = SlotOf(sent_).request;
  if (request.ByteSizeLong() > kMaxRetained_bytes) {
    request = {};
  } else {
    request.Clear();
  }
  if (ok) {
    ++sent_;
  } else {
    Cancel();
  }
  Advance(std::move(lock));
}

// The client cancelled or disconnected, the deadline passed, or the stream ended.
void SessionStream::Call::Done(bool) {
  Lock lock(mutex_);
  done_ = true;
  if (context_.IsCancelled()) Cancel();
  Advance(std::move(lock));
}

// A read may still be in progress; it completes when the stream has ended.
void SessionStream::Call::FinishIfAnswered() {
  if (finishing_ || !end_status_ || solving_ || writing_) return;
  if (!Cancelled() && sent_ < accepted_) return;
  finishing_ = true;
  stream_.Finish(*end_status_, &finished_tag_);
}

void SessionStream::Call::Finished(bool) {
  Lock lock(mutex_);
  finished_ = true;
  Advance(std::move(lock));
}

void SessionStream::Await(grpc::ServerCompletionQueue* queue) { new Call(this, queue); }

void SessionStream::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (Call* call : calls_) call->Drain();
  detached_sessions_.DropAll();
}

void SessionStream::Sweep() {
  detached_sessions_.Sweep();
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) call->Sweep(now);
}

// At the limit, drops the oldest detached session to make room.
tl::expected<std::unique_ptr<Session>, ServiceError> SessionStream::NewSession() {
  auto session = context_.engine->NewSession();
  if (!session && detached_sessions_.DropOldest()) session = context_.engine->NewSession();
  return session;
}

bool SessionStream::Add(Call* call) {
  const std::lock_guard lock(mutex_);
  if (!draining_) calls_.insert(call);
  return !draining_;
}

void SessionStream::Remove(Call* call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

}  // namespace sap
