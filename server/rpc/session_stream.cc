#include "server/rpc/session_stream.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/rpc/completion_tag.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/unary_call.h"
#include "server/server_identity.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

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
class SessionStream::Call {
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

 private:
  using Lock = std::unique_lock<std::mutex>;

  // A step and its answer.
  struct Slot {
    v1::SolveSessionRequest request;
    v1::SolveSessionResponse response;
    Clock::time_point arrival;
    int64_t held_bytes{0};                  // of the request, then of the answer that is being sent
    std::optional<ServiceError> refused{};  // the step did not fit into the limits on bytes
  };

  void Accepted(bool ok);
  void Read(bool ok);
  void Solved();
  void Written(bool ok);
  void Done(bool ok);
  void RejectionDue(bool ok);
  void Finished(bool ok);

  void AcceptMessage(int64_t bytes);
  void Open(const v1::OpenSession& open);
  void HoldStep(Slot* slot, int64_t bytes);
  void SetHeldBytes(Slot* slot, int64_t bytes);
  void RecordAnswer();
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
  // The same for a stream that is not let in, at the rate that the limiter allows.
  void Reject(const grpc::Status& status) {
    EndWith(status);
    if (Cancelled()) return;
    rejection_delayed_ = method_->context_.rejection_limiter->Delay(
        account_.get(), queue_, &rejection_tag_, &rejection_alarm_);
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
    return method_->context_.handler->config().session.max_steps_in_flight;
  }

  SessionStream* const method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  // Messages are read as bytes: gRPC reports a message that it cannot parse like the end of the
  // stream.
  grpc::ServerAsyncReaderWriter<v1::SolveSessionResponse, grpc::ByteBuffer> stream_;
  grpc::ByteBuffer received_;  // by the read in progress
  std::shared_ptr<ClientAccount> account_;
  uint64_t tokens_version_{0};  // see Authenticator::IsStillValid
  RequestId request_id_;        // of all lines of the session
  std::unique_ptr<Session> session_;
  grpc::Alarm rejection_alarm_;
  Clock::time_point arrival_;
  Clock::time_point deadline_;
  Clock::time_point leave_time_{Clock::time_point::max()};  // from then on the client is to move
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  // Message counts. Message 0 opens the session, the others are steps.
  uint64_t accepted_{0};  // read and valid
  uint64_t answered_{0};  // answer available
  uint64_t sent_{0};      // answer written
  std::vector<Slot> slots_;
  int64_t held_bytes_{0};  // by all slots
  // Its acceptance is handled. Another thread of the queue may handle the end of the call first.
  bool begun_{false};
  bool reading_{false};
  bool solving_{false};
  bool writing_{false};
  std::optional<grpc::Status> end_status_;  // set once no more steps are accepted
  bool rejection_delayed_{false};
  bool finishing_{false};
  bool finished_{false};
  bool done_{false};
  Clock::time_point last_activity_;
  Clock::time_point write_start_;  // of the write in progress

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> written_tag_{this, &Call::Written};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> rejection_tag_{this, &Call::RejectionDue};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

void SessionStream::Call::Accepted(bool ok) {
  if (!ok) return Delete();  // shutting down: the done tag will not complete
  method_->Await(queue_);
  method_->context_.observer->Started(Method::kSolveSession);
  Lock lock(mutex_);
  arrival_ = last_activity_ = Clock::now();
  deadline_ = SteadyDeadline(context_);
  leave_time_ = method_->NextLeaveTime(arrival_);
  slots_.resize(MaxStepsInFlight());
  auto account = method_->context_.authenticator->Identify(context_);
  if (account) account_ = std::move(*account);
  if (account_ == nullptr) {
    Reject(ToRpcStatus(tl::unexpected(account.error())));
  } else if (!method_->context_.in_flight_calls->Enter()) {
    EndWith(ShuttingDown());
  } else if (const auto attempt = CheckAttempt(context_); !attempt) {
    Reject(ToRpcStatus(attempt));
  } else if (const auto checked = method_->context_.handler->CheckRate(account_.get()); !checked) {
    Reject(ToRpcStatus(checked));
  } else {
    lock.unlock();
    const bool added = method_->Add(this);
    lock.lock();
    if (!added) EndWith(ShuttingDown());
  }
  begun_ = true;
  Advance(std::move(lock));
}

void SessionStream::Call::Read(bool ok) {
  Lock lock(mutex_);
  // Until it is accepted, the slot of the next message belongs to the read.
  Slot& slot = SlotOf(accepted_);
  lock.unlock();
  const auto bytes = static_cast<int64_t>(received_.Length());
  const bool parsed = ok && ParseMessage(&received_, &slot.request);
  lock.lock();
  reading_ = false;
  last_activity_ = Clock::now();
  if (!ok) {
    EndWith(accepted_ > 0 ? grpc::Status::OK
                          : ToRpcStatus(RefuseField("open", "is missing; nothing was sent")));
  } else if (!parsed) {
    EndWith(NoMessage());
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
  } else {
    HoldStep(&slot, bytes);
  }
  if (!end_status_) ++accepted_;
}

// Counts the step against the limits on bytes. If it does not fit, it fails in its turn, and its
// problem is freed at once.
void SessionStream::Call::HoldStep(Slot* slot, int64_t bytes) {
  const ServiceStatus held =
      method_->context_.handler->admission().HoldBytes(account_.get(), bytes, held_bytes_);
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
  method_->context_.handler->admission().AddBytes(account_.get(), more);
}

void SessionStream::Call::Open(const v1::OpenSession& open) {
  auto session = method_->context_.handler->NewSession(account_.get());
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

void SessionStream::Call::RecordAnswer() {
  const Slot& slot = SlotOf(answered_);
  const v1::Failure& failure = slot.response.step().outcome().failure();
  const std::chrono::duration<double> took = Clock::now() - slot.arrival;
  method_->context_.observer->StepEnded(failure.code(), failure.message(), took.count(), context_,
                                        &request_id_, account_.get(), slot.request,
                                        slot.response.step().step_id());
  ++answered_;
}

void SessionStream::Call::Sweep(Clock::time_point now) {
  const SessionConfig& config = method_->context_.handler->config().session;
  const double read_timeout_s = method_->context_.handler->config().read_timeout_s;
  Lock lock(mutex_);
  const std::chrono::duration<double> writing = now - write_start_;
  const std::chrono::duration<double> idle = now - last_activity_;
  if (!end_status_ &&
      !method_->context_.authenticator->IsStillValid(context_, account_.get(), &tokens_version_)) {
    EndWith(ToRpcStatus(tl::unexpected(
        ServiceError{ServiceCode::kUnauthenticated, "the bearer token is no longer valid", ""})));
    return FinishIfAnswered();
  }
  const bool is_unopened = !end_status_ && accepted_ == 0;
  if ((writing_ && writing.count() > config.write_timeout_s) ||
      (is_unopened && idle.count() > read_timeout_s)) {
    // After TryCancel the write completes with an error and the stream ends as if the client had
    // disconnected. Any other status would wait behind the answer.
    context_.TryCancel();
  } else if (!end_status_ && !solving_ && accepted_ == sent_ && idle.count() > config.idle_s) {
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
  if (!begun_) return;
  // While a write is in progress, a thread solves steps of one stream for at most the inline limit;
  // then other streams are served until the write completes.
  const std::chrono::duration<double, std::micro> inline_budget(
      method_->context_.handler->config().inline_below_us);
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
                                    &request_id_, account_.get(), /*request_bytes=*/0);
  if (held_bytes_ > 0) {
    method_->context_.handler->admission().AddBytes(account_.get(), -held_bytes_);
  }
  lock.unlock();
  method_->Remove(this);
  session_.reset();  // before the call stops counting: a drained server has no session
  // Strangers did not enter: a drain does not wait for them.
  if (account_ != nullptr) method_->context_.in_flight_calls->Leave();
  Delete();
}

void SessionStream::Call::Delete() {
  InFlightCalls* const in_flight_calls = method_->context_.in_flight_calls;
  delete this;
  in_flight_calls->EndOnQueue();
}

bool SessionStream::Call::StartStep() {
  Slot& slot = SlotOf(answered_);
  const CallContext call{{slot.arrival, deadline_, &cancelled_}, account_.get()};
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
  Lock lock(mutex_);
  solving_ = false;
  RecordAnswer();
  Advance(std::move(lock));
}

void SessionStream::Call::ReadNext() {
  if (reading_ || end_status_ || accepted_ - sent_ == slots_.size()) return;
  // At a limit on bytes the client waits in the transport until one of its answers is sent.
  if (accepted_ > sent_ && method_->context_.handler->admission().IsFull(*account_)) return;
  reading_ = true;
  stream_.Read(&received_, &read_tag_);
}

void SessionStream::Call::WriteNext() {
  if (writing_ || sent_ == answered_ || Cancelled()) return;
  writing_ = true;
  write_start_ = Clock::now();
  Slot& slot = SlotOf(sent_);
  v1::SolveSessionResponse& response = slot.response;
  response.set_credits(method_->context_.handler->queue().backlogged() ? 1 : MaxStepsInFlight());
  response.set_draining(method_->drain_announced_.load(std::memory_order_relaxed) ||
                        write_start_ >= leave_time_);
  stream_.Write(response, &written_tag_);
  SetHeldBytes(&slot, static_cast<int64_t>(response.ByteSizeLong()));
  slot.request.Clear();  // also frees the step, as one of a oneof
}

void SessionStream::Call::Written(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  last_activity_ = Clock::now();
  if (ok) {
    SetHeldBytes(&SlotOf(sent_), 0);
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
  if (rejection_delayed_) rejection_alarm_.Cancel();
  Advance(std::move(lock));
}

// A read may still be in progress; it completes when the stream has ended.
void SessionStream::Call::FinishIfAnswered() {
  if (finishing_ || !end_status_ || solving_ || writing_ || rejection_delayed_) return;
  if (!Cancelled() && sent_ < accepted_) return;
  finishing_ = true;
  MarkAsServed(&context_);
  if (!end_status_->ok()) request_id_.Return(&context_);
  stream_.Finish(*end_status_, &finished_tag_);
}

// The rejection may be sent, or need not wait since the client is gone.
void SessionStream::Call::RejectionDue(bool) {
  Lock lock(mutex_);
  rejection_delayed_ = false;
  Advance(std::move(lock));
}

void SessionStream::Call::Finished(bool) {
  Lock lock(mutex_);
  finished_ = true;
  Advance(std::move(lock));
}

// Spread over a fifth of the age, so that sessions that were opened together move one by one.
Clock::time_point SessionStream::NextLeaveTime(Clock::time_point opened) {
  const double age_s = context_.handler->config().connection.age_s;
  if (age_s <= 0) return Clock::time_point::max();
  constexpr double kGoldenRatio = 0.6180339887498949;
  double whole = 0;
  const double part = std::modf(
      static_cast<double>(opened_.fetch_add(1, std::memory_order_relaxed)) * kGoldenRatio, &whole);
  const std::chrono::duration<double> age(age_s * (0.9 + 0.2 * part));
  return opened + std::chrono::duration_cast<Clock::duration>(age);
}

void SessionStream::Await(grpc::ServerCompletionQueue* queue) { new Call(this, queue); }

void SessionStream::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (Call* call : calls_) call->Drain();
}

void SessionStream::Sweep() {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) call->Sweep(now);
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
