#include "server/session_method.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/completion_tag.h"
#include "server/rpc_status.h"
#include "server/unary_call.h"

namespace sap {
namespace {

using Clock = CallLimits::Clock;

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
class SessionMethod::Call {
 public:
  Call(SessionMethod* method, grpc::ServerCompletionQueue* queue)
      : method_(method), queue_(queue), stream_(&context_) {
    method_->open_calls_->BeginOnQueue();
    context_.AsyncNotifyWhenDone(&done_tag_);
    method_->service_->RequestSolveSession(&context_, &stream_, queue, queue, &accepted_tag_);
  }

  // Called once, while the call is registered.
  void Drain() {
    const std::lock_guard lock(mutex_);
    EndWith(ShuttingDown());
    FinishIfAnswered();
  }

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
  bool Cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  Slot& SlotOf(uint64_t step) { return slots_[step % slots_.size()]; }
  int MostInFlight() const { return method_->engine_->config().max_steps_in_flight; }

  SessionMethod* const method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1::SolveSessionResponse, v1::SolveSessionRequest> stream_;
  std::shared_ptr<ClientAccount> account_;
  std::unique_ptr<Session> session_;
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

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> written_tag_{this, &Call::Written};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

void SessionMethod::Call::Accepted(bool ok) {
  if (!ok) return Delete();  // the server shuts down, and the done tag will not come
  method_->Await(queue_);
  Lock lock(mutex_);
  deadline_ = SteadyDeadline(context_);
  slots_.resize(MostInFlight());
  const bool entered = method_->open_calls_->Enter();
  auto account = method_->callers_->Identify(context_);
  if (account) account_ = std::move(*account);
  auto session = method_->engine_->NewSession();
  if (!entered) {
    EndWith(ShuttingDown());
  } else if (account_ == nullptr) {
    EndWith(ToRpcStatus(tl::unexpected(account.error())));
  } else if (!session) {
    EndWith(ToRpcStatus(tl::unexpected(session.error())));
  } else {
    session_ = std::move(*session);
    lock.unlock();
    const bool added = method_->Add(this);
    lock.lock();
    if (!added) EndWith(ShuttingDown());
  }
  GoOn(std::move(lock));
}

void SessionMethod::Call::Read(bool ok) {
  Lock lock(mutex_);
  reading_ = false;
  if (!ok) {
    EndWith(taken_in_ > 0 ? grpc::Status::OK
                          : ToRpcStatus(RefuseField("open", "is missing; nothing was sent")));
  } else if (!last_status_) {
    TakeIn();
  }
  GoOn(std::move(lock));
}

void SessionMethod::Call::TakeIn() {
  Slot& slot = SlotOf(taken_in_);
  slot.arrival = Clock::now();
  if (const ServiceStatus refused = RefuseMessage(slot.request, taken_in_ == 0); !refused) {
    return EndWith(ToRpcStatus(refused));
  }
  if (taken_in_ == 0) {
    if (const ServiceStatus opened = session_->Open(slot.request.open()); !opened) {
      return EndWith(ToRpcStatus(opened));
    }
    slot.response.mutable_opened()->set_max_steps_in_flight(MostInFlight());
    answered_ = 1;
  }
  ++taken_in_;
}

// Does what can be done next, and drops the call when nothing is left: the caller must not touch it
// any more.
void SessionMethod::Call::GoOn(Lock lock) {
  // A thread solves steps of one stream for as long as a single one may take it. Then the other
  // streams have their turn, until the write under way completes.
  const std::chrono::duration<double, std::micro> turn(method_->engine_->config().inline_below_us);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(turn);
  ReadNext();
  WriteNext();
  while (MaySolve() && (!writing_ || Clock::now() < until)) {
    solving_ = true;
    lock.unlock();
    // If not, Solved() goes on, and the call may have ended already.
    if (!StartStep()) return;
    lock.lock();
    solving_ = false;
    ++answered_;
    ReadNext();
    WriteNext();
  }
  FinishIfAnswered();
  if (!finished_ || !done_ || reading_ || solving_ || writing_) return;
  lock.unlock();
  method_->Remove(this);
  method_->open_calls_->Leave();
  Delete();
}

void SessionMethod::Call::Delete() {
  OpenCalls* const open_calls = method_->open_calls_;
  delete this;
  open_calls->EndOnQueue();
}

bool SessionMethod::Call::StartStep() {
  Slot& slot = SlotOf(answered_);
  return session_->StartStep(
      slot.request.step(), {slot.arrival, deadline_, &cancelled_, account_.get()},
      slot.response.mutable_step(), [](void* call) { static_cast<Call*>(call)->Solved(); }, this);
}

void SessionMethod::Call::Solved() {
  Lock lock(mutex_);
  solving_ = false;
  ++answered_;
  GoOn(std::move(lock));
}

void SessionMethod::Call::ReadNext() {
  if (reading_ || last_status_ || taken_in_ - sent_ == slots_.size()) return;
  reading_ = true;
  stream_.Read(&SlotOf(taken_in_).request, &read_tag_);
}

void SessionMethod::Call::WriteNext() {
  if (writing_ || sent_ == answered_ || Cancelled()) return;
  writing_ = true;
  stream_.Write(SlotOf(sent_).response, &written_tag_);
}

void SessionMethod::Call::Written(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  SlotOf(sent_).request.Clear();
  if (ok) {
    ++sent_;
  } else {
    Cancel();
  }
  GoOn(std::move(lock));
}

// The client cancelled or is gone, its deadline has passed, or the stream has ended.
void SessionMethod::Call::Done(bool) {
  Lock lock(mutex_);
  done_ = true;
  if (context_.IsCancelled()) Cancel();
  GoOn(std::move(lock));
}

// A read may still be under way; it completes when the stream has ended.
void SessionMethod::Call::FinishIfAnswered() {
  if (finishing_ || !last_status_ || solving_ || writing_) return;
  if (!Cancelled() && sent_ < taken_in_) return;
  finishing_ = true;
  stream_.Finish(*last_status_, &finished_tag_);
}

void SessionMethod::Call::Finished(bool) {
  Lock lock(mutex_);
  finished_ = true;
  GoOn(std::move(lock));
}

void SessionMethod::Await(grpc::ServerCompletionQueue* queue) { new Call(this, queue); }

void SessionMethod::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (Call* call : calls_) call->Drain();
}

bool SessionMethod::Add(Call* call) {
  const std::lock_guard lock(mutex_);
  if (!draining_) calls_.insert(call);
  return !draining_;
}

void SessionMethod::Remove(Call* call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

}  // namespace sap
