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

// Requests larger than this give their storage back once they are answered.
constexpr size_t kKept_bytes = 4 << 20;
constexpr size_t kShort_bytes = 64 << 10;

ServiceStatus RefuseMessage(const v1::SolveSessionRequest& request, bool is_first) {
  switch (request.request_case()) {
    case v1::SolveSessionRequest::kOpen:
      if (is_first) return {};
      return RefuseField("open", "comes a second time; only the first message opens the session");
    case v1::SolveSessionRequest::kStep:
      if (!is_first) return {};
      return RefuseField("open", "is missing; the first message must open the session");
    case v1::SolveSessionRequest::REQUEST_NOT_SET:
      break;
  }
  return RefuseField("request", "is missing; every message opens the session or brings a step");
}

}  // namespace

// One stream. Everything but what the running step uses is guarded by the mutex; each completed
// operation ends by looking at what can be done next. At most one read, one write and one step are
// under way at a time.
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

  // Called every now and then, while the call is registered.
  void Sweep(Clock::time_point now);

  void Resume(std::unique_ptr<DetachedSession> lost) override;
  // Of the stream that another one takes the session from. Its end completes the operations.
  void GiveUp() override { context_.TryCancel(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // A step and its answer, which keeps its storage for later ones.
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

  void TakeIn();
  void OpenOrClaim(const v1::OpenSession& open);
  void SetOpened(v1::SessionOpened* opened);
  bool AnswerAgain(const v1::SessionStep& step, v1::StepOutcome* outcome);
  void CountAnswered();
  std::unique_ptr<DetachedSession> TakeLost();
  void GoOn(Lock lock);
  bool StartStep();
  void ReadNext();
  void WriteNext();
  void FinishIfAnswered();
  void Delete();

  // No more steps are taken in; the stream ends with the status when those there are answered.
  void EndWith(const grpc::Status& status) {
    if (!last_status_) last_status_ = status;
  }
  void Cancel() {
    cancelled_.store(true, std::memory_order_relaxed);
    EndWith(grpc::Status::CANCELLED);
  }
  bool MaySolve() const { return !solving_ && answered_ < taken_in_ && !Cancelled(); }
  // Whether to read the next step before this one is solved. Reading makes gRPC acknowledge what
  // has come with a packet of its own, which costs more than a short step gains from it.
  bool ReadsAhead() { return SlotOf(answered_).request.ByteSizeLong() > kShort_bytes; }
  bool Cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  Slot& SlotOf(uint64_t step) { return slots_[step % slots_.size()]; }
  int MostInFlight() const {
    return method_->context_.engine->config().session.max_steps_in_flight;
  }

  SessionStream* const method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1::SolveSessionResponse, v1::SolveSessionRequest> stream_;
  std::shared_ptr<ClientAccount> account_;
  std::unique_ptr<Session> session_;
  std::string token_;                     // of a session that can be resumed
  bool claiming_{false};                  // waits for the session of the token
  std::vector<v1::StepOutcome> earlier_;  // of a resumed session, until its client goes on
  Clock::time_point arrival_;
  Clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  // Message 0 opens the session, the others are steps; what is between the counts is under way.
  uint64_t taken_in_{0};
  uint64_t answered_{0};
  uint64_t sent_{0};
  std::vector<Slot> slots_;
  bool reading_{false};
  bool solving_{false};
  bool writing_{false};
  std::optional<grpc::Status> last_status_;  // once no more steps are taken in
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
  if (!ok) return Delete();  // the server shuts down, and the done tag will not come
  method_->Await(queue_);
  method_->context_.watch->Started(Method::kSolveSession);
  Lock lock(mutex_);
  arrival_ = last_activity_ = Clock::now();
  deadline_ = SteadyDeadline(context_);
  slots_.resize(MostInFlight());
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
  GoOn(std::move(lock));
}

void SessionStream::Call::Read(bool ok) {
  Lock lock(mutex_);
  reading_ = false;
  last_activity_ = Clock::now();
  if (!ok) {
    EndWith(taken_in_ > 0 ? grpc::Status::OK
                          : ToRpcStatus(RefuseField("open", "is missing; nothing was sent")));
  } else if (!last_status_) {
    TakeIn();
  }
  if (!claiming_) return GoOn(std::move(lock));
  // Until the session comes or not, nothing else happens here: it counts as a step being solved.
  claiming_ = false;
  solving_ = true;
  lock.unlock();
  method_->lost_.Claim(token_, account_->name(), this);
}

void SessionStream::Call::TakeIn() {
  Slot& slot = SlotOf(taken_in_);
  slot.arrival = last_activity_;
  if (const ServiceStatus refused = RefuseMessage(slot.request, taken_in_ == 0); !refused) {
    return EndWith(ToRpcStatus(refused));
  }
  if (taken_in_ == 0) OpenOrClaim(slot.request.open());
  if (!last_status_) ++taken_in_;
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
  if (open.resumable() && method_->lost_.keeps()) {
    token_ = DetachedSessions::NewToken();
    method_->lost_.Hold(token_, this);
  }
  SetOpened(SlotOf(0).response.mutable_opened());
  answered_ = 1;
}

void SessionStream::Call::SetOpened(v1::SessionOpened* opened) {
  opened->set_max_steps_in_flight(MostInFlight());
  opened->set_low_latency(session_->low_latency());
  opened->set_resume_token(token_);
  if (!token_.empty()) {
    opened->set_resume_within_s(method_->context_.engine->config().session.resume_s);
  }
}

void SessionStream::Call::Resume(std::unique_ptr<DetachedSession> lost) {
  Lock lock(mutex_);
  solving_ = false;
  if (lost == nullptr) {
    token_.clear();
    EndWith(ToRpcStatus(tl::unexpected(ServiceError{
        ServiceCode::kFailedPrecondition,
        "there is no such session to resume; open a new one and send the steps again", ""})));
    // The message that asked for it has no answer.
    taken_in_ = 0;
    return GoOn(std::move(lock));
  }
  session_ = std::move(lost->session);
  earlier_ = std::move(lost->outcomes);
  method_->lost_.Hold(token_, this);
  method_->context_.watch->SessionResumed();
  v1::SessionOpened* opened = SlotOf(0).response.mutable_opened();
  SetOpened(opened);
  if (const auto last = session_->last_step_id()) opened->set_last_step_id(*last);
  answered_ = 1;
  GoOn(std::move(lock));
}

// A step that the session has answered before its connection was lost has the same outcome again.
bool SessionStream::Call::AnswerAgain(const v1::SessionStep& step, v1::StepOutcome* outcome) {
  for (const v1::StepOutcome& earlier : earlier_) {
    if (earlier.step_id() != step.step_id()) continue;
    *outcome = earlier;
    return true;
  }
  return false;
}

// What is to be kept of a session whose client was lost; null if nothing is.
std::unique_ptr<DetachedSession> SessionStream::Call::TakeLost() {
  if (token_.empty() || session_ == nullptr || !Cancelled()) return nullptr;
  auto lost = std::make_unique<DetachedSession>();
  // The slots hold the last ones answered, and there are enough for all that the client may lack.
  const uint64_t first = answered_ > slots_.size() ? answered_ - slots_.size() : 1;
  for (const v1::StepOutcome& outcome : earlier_) lost->outcomes.push_back(outcome);
  for (uint64_t i = std::max<uint64_t>(first, 1); i < answered_; ++i) {
    v1::StepOutcome* outcome = SlotOf(i).response.mutable_step();
    // A step that was given up has none.
    if (IsGivenUp(static_cast<ServiceCode>(outcome->outcome().failure().code()))) continue;
    lost->outcomes.push_back(std::move(*outcome));
  }
  lost->session = std::move(session_);
  lost->client = account_->name();
  return lost;
}

void SessionStream::Call::CountAnswered() {
  const Slot& slot = SlotOf(answered_);
  const v1::Failure& failure = slot.response.step().outcome().failure();
  const std::chrono::duration<double> took = Clock::now() - slot.arrival;
  method_->context_.watch->StepEnded(failure.code(), failure.message(), took.count(), context_,
                                     account_.get(), slot.request, slot.response.step().step_id());
  ++answered_;
}

void SessionStream::Call::Sweep(Clock::time_point now) {
  const SessionConfig& config = method_->context_.engine->config().session;
  Lock lock(mutex_);
  const std::chrono::duration<double> still = now - last_activity_;
  if (writing_ && still.count() > config.write_timeout_s) {
    // The write completes, and the stream ends, as if the client were gone.
    context_.TryCancel();
  } else if (!last_status_ && !solving_ && taken_in_ == sent_ && still.count() > config.idle_s) {
    method_->context_.watch->SessionExpired();
    EndWith(ToRpcStatus(tl::unexpected(ServiceError{
        ServiceCode::kAborted,
        "the session was idle for longer than the server allows; open a new one", ""})));
    FinishIfAnswered();
  }
}

// Does what can be done next, and drops the call when nothing is left: the caller must not touch it
// any more.
void SessionStream::Call::GoOn(Lock lock) {
  // A thread solves steps of one stream for as long as a single one may take it. Then the other
  // streams have their turn, until the write under way completes.
  const std::chrono::duration<double, std::micro> turn(
      method_->context_.engine->config().inline_below_us);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(turn);
  if (!MaySolve() || ReadsAhead()) ReadNext();
  WriteNext();
  while (MaySolve() && (!writing_ || Clock::now() < until)) {
    solving_ = true;
    lock.unlock();
    // If not, Solved() goes on, and the call may have ended already.
    if (!StartStep()) return;
    lock.lock();
    solving_ = false;
    CountAnswered();
    WriteNext();
    ReadNext();
  }
  FinishIfAnswered();
  if (!finished_ || !done_ || reading_ || solving_ || writing_) return;
  const grpc::Status& status = Cancelled() ? grpc::Status::CANCELLED : *last_status_;
  const std::chrono::duration<double> took = Clock::now() - arrival_;
  method_->context_.watch->Ended(Method::kSolveSession, status, took.count(), context_,
                                 account_.get(), v1::SolveSessionRequest());
  std::unique_ptr<DetachedSession> lost = TakeLost();
  lock.unlock();
  method_->Remove(this);
  if (lost != nullptr) {
    method_->lost_.Keep(token_, std::move(lost));
  } else if (!token_.empty()) {
    method_->lost_.Forget(token_);
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
  if (!earlier_.empty()) {
    if (AnswerAgain(slot.request.step(), slot.response.mutable_step())) return true;
    earlier_.clear();
  }
  return session_->StartStep(
      slot.request.step(), {slot.arrival, deadline_, &cancelled_, account_.get()},
      slot.response.mutable_step(), [](void* call) { static_cast<Call*>(call)->Solved(); }, this);
}

void SessionStream::Call::Solved() {
  Lock lock(mutex_);
  solving_ = false;
  CountAnswered();
  GoOn(std::move(lock));
}

void SessionStream::Call::ReadNext() {
  if (reading_ || last_status_ || taken_in_ - sent_ == slots_.size()) return;
  reading_ = true;
  stream_.Read(&SlotOf(taken_in_).request, &read_tag_);
}

void SessionStream::Call::WriteNext() {
  if (writing_ || sent_ == answered_ || Cancelled()) return;
  writing_ = true;
  v1::SolveSessionResponse& response = SlotOf(sent_).response;
  response.set_credits(method_->context_.engine->queue().backlogged() ? 1 : MostInFlight());
  response.set_draining(method_->announced_.load(std::memory_order_relaxed));
  stream_.Write(response, &written_tag_);
}

void SessionStream::Call::Written(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  last_activity_ = Clock::now();
  v1::SolveSessionRequest& request = SlotOf(sent_).request;
  if (request.ByteSizeLong() > kKept_bytes) {
    request = {};
  } else {
    request.Clear();
  }
  if (ok) {
    ++sent_;
  } else {
    Cancel();
  }
  GoOn(std::move(lock));
}

// The client cancelled or is gone, its deadline has passed, or the stream has ended.
void SessionStream::Call::Done(bool) {
  Lock lock(mutex_);
  done_ = true;
  if (context_.IsCancelled()) Cancel();
  GoOn(std::move(lock));
}

// A read may still be under way; it completes when the stream has ended.
void SessionStream::Call::FinishIfAnswered() {
  if (finishing_ || !last_status_ || solving_ || writing_) return;
  if (!Cancelled() && sent_ < taken_in_) return;
  finishing_ = true;
  stream_.Finish(*last_status_, &finished_tag_);
}

void SessionStream::Call::Finished(bool) {
  Lock lock(mutex_);
  finished_ = true;
  GoOn(std::move(lock));
}

void SessionStream::Await(grpc::ServerCompletionQueue* queue) { new Call(this, queue); }

void SessionStream::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (Call* call : calls_) call->Drain();
  lost_.DropAll();
}

void SessionStream::Sweep() {
  lost_.Sweep();
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) call->Sweep(now);
}

// A lost session makes room for a new one.
tl::expected<std::unique_ptr<Session>, ServiceError> SessionStream::NewSession() {
  auto session = context_.engine->NewSession();
  if (!session && lost_.DropOldest()) session = context_.engine->NewSession();
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
