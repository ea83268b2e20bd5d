#include "client/cpp/transport/grpc_session.h"

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

#include "client/cpp/transport/channel.h"
#include "client/cpp/transport/loss.h"
#include "client/cpp/transport/request_bytes.h"
#include "client/cpp/transport/retry.h"
#include "client/cpp/transport/session_call.h"
#include "client/cpp/transport/session_steps.h"
#include "solver/parallel/forked_threads.h"
#include "solver/parallel/stop_token.h"

namespace sap::client {
namespace {

using WithoutConnection = SessionCall::WithoutConnection;

// Between attempts to leave a server that will shut down, and the longest that one takes.
constexpr std::chrono::milliseconds kBetweenMoves{500};
// A call that is left is closed in good order within this time, else cancelled.
constexpr std::chrono::milliseconds kClosing{50};
// A step with which servers end so many streams, and over the whole time to reconnect, is not sent
// again.
constexpr int kMaxLosses = 10;

// Before its first stream is open, a session is like any call. Later a server that has not noticed
// the loss may still count the old stream against its limit.
bool MayRetryToOpen(const Error& error, bool was_open) {
  return IsLoss(error, CallKind::kSession) ||
         (was_open && error.code == ErrorCode::kResourceExhausted);
}

// The stream that carries the steps.
enum class StreamState : uint8_t {
  kOpening,  // the first one; none was open
  kOpen,
  kDraining,  // open, and its server will shut down
  kBroken,    // a write failed: outcomes are awaited, and nothing more is sent
  kGivenUp,   // it has taken steps that were withdrawn
  kLost,      // none, until another one is open
};

// How the session is used.
enum class SessionState : uint8_t {
  kServing,
  kClosing,    // ends once its steps are solved
  kAbandoned,  // ends at once
};

// The coroutine of a session, and what it shares with the threads of its user, under the mutex of
// the events.
class SessionFlow : public std::enable_shared_from_this<SessionFlow> {
 public:
  SessionFlow(EventLoop* loop, const SessionResources& resources, v1::SolveSessionRequest open,
              Timeout deadline)
      : events_(loop),
        client_(resources),
        open_(std::move(open)),
        reconnect_within_(std::chrono::duration_cast<Clock::duration>(resources.reconnect_within)),
        steps_(reconnects(), open_.mutable_open()->mutable_options()),
        serving_(Serve()) {
    if (deadline) deadline_ = Clock::now() + *deadline;
  }

  Events& events() { return events_; }
  std::condition_variable_any& changed() { return changed_; }

  void Notify(std::function<void()> notify) {
    const std::lock_guard lock(notify_mutex_);
    notify_ = std::move(notify);
  }
  // To be called without the mutex, after all that may change something.
  void AfterChange() {
    std::shared_ptr<SessionFlow> last_user;
    bool has_changes = false;
    {
      const std::lock_guard lock(events_.mutex());
      has_changes = std::exchange(has_changes_, false);
      if (done()) {
        last_user = std::move(self_);
        changed_.notify_all();
      }
    }
    if (!has_changes) return;
    const std::lock_guard lock(notify_mutex_);
    if (const auto notify = notify_) notify();
  }

  // ---- Under the mutex.

  void Start() { serving_.Start(); }
  // In the background: this lives until the coroutine has ended.
  void StartInBackground() {
    self_ = shared_from_this();
    events_.CallAfterEvents(self_, [this] { AfterChange(); });
    Start();
  }

  StepStream::State state() const {
    return {.unanswered = steps_.unanswered(),
            .arrived = steps_.arrived(),
            .max_in_flight = credits_,
            .draining = stream_ == StreamState::kDraining,
            .opening = stream_ == StreamState::kOpening && !ended_,
            .ended = ended_};
  }
  SessionSteps& steps() { return steps_; }
  bool is_writing() const { return is_writing_; }

  // The steps have changed.
  void Wake() { events_.Add(); }

  // The next step starts as the first one, at a server of any build.
  void Reset() {
    steps_.Reset();
    build_.Forget();
  }

  // Leaves a stream whose server may have begun with steps that were withdrawn.
  void GiveStreamUp() {
    stream_ = StreamState::kGivenUp;
    if (call_ != nullptr) call_->Cancel();
    events_.Add();
  }
  void EndWith(Error error) {
    if (!ended_) ended_ = std::move(error);
    steps_.Abandon();
    Changed();
    events_.Add();
  }
  // Ends the session once its steps are solved, or at once.
  void Close() {
    if (session_ == SessionState::kServing) session_ = SessionState::kClosing;
    events_.Add();
  }
  void Abandon() {
    session_ = SessionState::kAbandoned;
    events_.Cancel();
    events_.Add();
  }
  bool done() const { return serving_.done() && events_.idle(); }
  const Status& closed() const { return closed_; }

 private:
  // A call whose server has opened the session.
  struct OpenedCall {
    std::unique_ptr<SessionCall> call;
    v1::SolveSessionResponse response;
  };

  bool reconnects() const { return reconnect_within_ > Clock::duration::zero(); }
  bool is_ending() const { return session_ == SessionState::kAbandoned || ended_; }
  bool is_closing() const { return session_ == SessionState::kClosing; }
  bool takes_steps() const {
    return stream_ == StreamState::kOpen || stream_ == StreamState::kDraining;
  }

  void Changed() {
    has_changes_ = true;
    changed_.notify_all();
  }

  Task<bool> Serve() {
    Status opened = co_await Open();
    if (!opened) EndWith(opened.error());
    Changed();
    while (!is_ending() && !(is_closing() && steps_.unanswered() == 0)) {
      if (steps_.unanswered() == 0) {
        co_await events_.Next();
        continue;
      }
      Status served = co_await ServeOldest();
      if (!served) EndWith(served.error());
    }
    co_await End();
    Changed();
    co_return true;
  }

  Task<Status> Open() {
    auto opened = co_await OpenCall(WithoutConnection::kFails, kNever);
    if (opened) {
      Use(*std::move(opened));
      co_return Status();
    }
    Status again = co_await Reconnect(opened.error(), /*was_open=*/false);
    co_return again;
  }

  // Until the oldest step has its outcome, or is withdrawn. An error ends the session.
  Task<Status> ServeOldest() {
    while (steps_.unanswered() > 0 && !is_ending()) {
      const bool arrived = co_await NextResponse();
      if (arrived) {
        Status taken = TakeResponse();
        co_return taken;
      }
      const bool given_up = stream_ == StreamState::kGivenUp;
      if (is_ending() || (steps_.unanswered() == 0 && !given_up)) break;
      Error why = co_await EndCall();
      if (given_up) why = {ErrorCode::kUnavailable, "a step was withdrawn", ""};
      if (steps_.unanswered() == 0) break;
      Status again = co_await Reconnect(std::move(why), /*was_open=*/true);
      if (!again) co_return again;
    }
    co_return Status();
  }

  // Waits for the next response, and sends meanwhile what the server takes. False if the stream has
  // ended.
  Task<bool> NextResponse() {
    while (call_ != nullptr) {
      co_await SendSteps();
      if (is_ending() || call_ == nullptr || steps_.unanswered() == 0) co_return false;
      if (stream_ == StreamState::kGivenUp) co_return false;
      // If it has not ended:
      if (stream_ == StreamState::kBroken && steps_.written() == 0) call_->Cancel();
      call_->StartReading();
      if (call_->TakeResponse(&response_)) co_return true;
      if (call_->at_end()) co_return false;
      co_await events_.Next();
      call_->CheckLimit();
    }
    co_return false;
  }

  Status TakeResponse() {
    if (!response_.has_step() || steps_.written() == 0) {
      return tl::unexpected(Error{ErrorCode::kInternal, "the response is not that of a step", ""});
    }
    if (!client_.allow_mixed_servers) {
      if (Status taken = build_.Take(ParseServerIdentity(server_)); !taken) return taken;
    }
    losses_ = lost_attempts_ = 0;
    pauses_.Restart();
    if (response_.credits() > 0) {
      credits_ = static_cast<int>(std::min<uint32_t>(response_.credits(), max_in_flight_));
    }
    if (takes_steps()) SetOpen(response_.draining());
    steps_.Answer(response_.step());
    Changed();
    return {};
  }

  // Cancelled at the limit.
  Task<tl::expected<OpenedCall, Error>> OpenCall(WithoutConnection without_connection,
                                                 Clock::time_point limit) {
    Timeout left;
    if (deadline_) left = *deadline_ - Clock::now();
    OpenedCall opened;
    opened.call = std::make_unique<SessionCall>(&events_);
    SessionCall* call = opened.call.get();
    const bool begun = co_await call->Open(client_.channel, client_.start, left, lost_attempts_,
                                           without_connection, limit);
    const grpc::ByteBuffer open = Serialize(open_);
    if (begun) co_await call->Write(open);  // if this fails, so does the read
    const bool read = co_await call->Read(&opened.response);
    if (!read) {
      Error why = co_await Finish(call);
      co_return tl::unexpected(std::move(why));
    }
    call->SetLimit(kNever);
    const Status checked = build_.Check(ParseServerIdentity(opened.response.opened().server()));
    if (!checked) {
      co_await CloseAside(call);
      co_return tl::unexpected(checked.error());
    }
    co_return std::move(opened);
  }

  void SetOpen(bool draining) { stream_ = draining ? StreamState::kDraining : StreamState::kOpen; }

  void Use(OpenedCall opened) {
    call_ = std::move(opened.call);
    server_ = opened.response.opened().server();
    // Absent counts as 1.
    max_in_flight_ = static_cast<int>(
        std::clamp(opened.response.opened().max_steps_in_flight(), uint32_t{1}, uint32_t{1} << 20));
    credits_ = max_in_flight_;
    SetOpen(opened.response.draining());
    next_move_ =
        opened.response.draining() ? Clock::now() + kBetweenMoves : Clock::time_point::min();
    steps_.RestartStream();
    Changed();
  }

  // Why there is nothing more to read from the call.
  Task<Error> Finish(SessionCall* call) {
    const grpc::Status status = co_await call->Finish();
    Error why{ErrorCode::kUnavailable, "the server has ended the session", "", "ENDED"};
    if (!status.ok()) why = ToError(status, call->context(), client_.start.encrypted);
    co_return why;
  }
  Task<Error> EndCall() {
    Error why{ErrorCode::kUnavailable, "the session has no connection", ""};
    if (call_ != nullptr) why = co_await Finish(call_.get());
    call_ = nullptr;
    co_return why;
  }

  // Closes a call without steps.
  static Task<bool> CloseAside(SessionCall* call) {
    call->SetLimit(Clock::now() + kClosing);
    co_await call->Close();
    co_return true;
  }

  // Opens a call in place of the lost one, or returns why the session has ended.
  Task<Status> Reconnect(Error why, bool was_open) {
    if (!IsLoss(why, CallKind::kSession)) co_return tl::unexpected(why);
    // A call without steps sent nothing that could end a server.
    if (steps_.written() == 0 && stream_ != StreamState::kBroken) why.lost_attempts = 0;
    if (was_open) stream_ = StreamState::kLost;
    why.lost_attempts = lost_attempts_ += why.lost_attempts;
    if (!reconnects() || lost_attempts_ >= kMaxLostAttempts) co_return tl::unexpected(why);
    const Clock::time_point lost = Clock::now();
    if (losses_++ == 0) first_loss_ = lost;
    const bool in_vain = losses_ > kMaxLosses && lost > first_loss_ + reconnect_within_;
    if (in_vain) co_return tl::unexpected(why);
    const Clock::time_point until = lost + reconnect_within_;
    // A server that does not answer leaves time for another one.
    Clock::time_point limit = lost + reconnect_within_ / 2;
    BuildSearch build_search;
    while (true) {
      if (was_open && steps_.unanswered() == 0) co_return Status();  // withdrawn: the next one asks
      const Clock::time_point next = Clock::now() + pauses_.Next();
      if (next >= until) co_return tl::unexpected(why);
      const bool waited = co_await Pause(&events_, next);
      if (!waited) co_return tl::unexpected(why);
      auto opened = co_await OpenCall(WithoutConnection::kWaits, limit);
      if (opened) {
        Use(*std::move(opened));
        co_return Status();
      }
      const bool again = IsOtherBuild(opened.error()) ? build_search.GoesOn(opened.error())
                                                      : MayRetryToOpen(opened.error(), was_open);
      if (!again) co_return tl::unexpected(opened.error());
      if (Clock::now() >= limit) limit = until;
    }
  }

  // Whether the steps that are not sent yet should go to another server.
  bool IsLeaving() const {
    return stream_ == StreamState::kDraining && reconnects() && Clock::now() >= next_move_;
  }

  // Opens a call that another server may take, while none of the steps is at this one. Returns the
  // old call; null if the session stays.
  Task<std::unique_ptr<SessionCall>> Leave() {
    auto opened = co_await OpenCall(WithoutConnection::kFails, Clock::now() + kBetweenMoves);
    std::unique_ptr<SessionCall> old;
    if (opened && !opened->response.draining()) {
      old = std::move(call_);
      Use(*std::move(opened));
      co_return std::move(old);
    }
    if (opened) co_await CloseAside(opened->call.get());  // at the same server, or one like it
    next_move_ = Clock::now() + kBetweenMoves;
    co_return std::move(old);
  }

  // Sends the steps that a server takes now.
  Task<bool> SendSteps() {
    std::unique_ptr<SessionCall> old;
    if (IsLeaving() && steps_.written() < steps_.unanswered()) {
      if (steps_.written() > 0) co_return true;  // until their outcomes are here
      old = co_await Leave();
    }
    co_await WriteSteps();
    if (old != nullptr) co_await CloseAside(old.get());
    co_return true;
  }

  // A step whose write fails may have arrived all the same: its outcome is awaited, and nothing
  // follows it.
  Task<bool> WriteSteps() {
    while (takes_steps()) {
      const grpc::ByteBuffer* request = steps_.Next(max_in_flight_);
      if (request == nullptr) break;
      steps_.MarkWritten();
      is_writing_ = true;
      const bool written = co_await call_->Write(*request);
      is_writing_ = false;
      if (written) continue;
      if (takes_steps()) stream_ = StreamState::kBroken;
      if (reconnects()) call_->SetLimit(Clock::now() + reconnect_within_);
    }
    co_return true;
  }

  // A loss is no error where no step is left.
  Task<bool> End() {
    if (call_ != nullptr && is_closing() && !ended_) {
      if (reconnects()) call_->SetLimit(Clock::now() + reconnect_within_);
      const grpc::Status status = co_await call_->Close();
      closed_ = FromRpcStatus(status, call_->context(), client_.start.encrypted);
      if (!closed_ && IsLoss(closed_.error(), CallKind::kSession)) closed_ = Status();
    } else if (call_ != nullptr) {
      call_->Cancel();
      co_await call_->Finish();
    }
    if (ended_) closed_ = tl::unexpected(*ended_);
    call_ = nullptr;
    events_.CancelTimers();
    co_return true;
  }

  Events events_;
  const SessionResources client_;
  v1::SolveSessionRequest open_;
  const Clock::duration reconnect_within_;
  std::optional<Clock::time_point> deadline_;

  std::unique_ptr<SessionCall> call_;  // null: lost
  std::string server_;                 // identity of its server
  BuildPin build_;                     // of the outcomes
  int max_in_flight_{1};
  int credits_{1};
  StreamState stream_{StreamState::kOpening};
  Clock::time_point next_move_;  // when to leave a draining server, at the earliest
  SessionSteps steps_;
  bool is_writing_{false};  // a step
  v1::SolveSessionResponse response_;

  int losses_{0};         // since the last outcome
  int lost_attempts_{0};  // of these, with a step that was sent; see Error
  Clock::time_point first_loss_;
  RetryPauses pauses_;

  std::optional<Error> ended_;
  SessionState session_{SessionState::kServing};
  Status closed_;
  bool has_changes_{false};
  std::condition_variable_any changed_;
  std::recursive_mutex notify_mutex_;  // held while notify_ runs, which may call back
  std::function<void()> notify_;
  std::shared_ptr<SessionFlow> self_;
  Task<bool> serving_;
};

// The object that the user of a session holds.
class GrpcSession final : public StepStream {
 public:
  GrpcSession(const SessionResources& resources, const v1::SolveSessionRequest& open,
              Timeout deadline)
      : background_(resources.background),
        own_loop_(background_ ? nullptr : std::make_unique<EventLoop>(open.open().low_latency())),
        flow_(std::make_shared<SessionFlow>(background_ ? background_->loop() : own_loop_.get(),
                                            resources, open, deadline)) {
    const std::lock_guard lock(mutex());
    background_ ? flow_->StartInBackground() : flow_->Start();
  }

  ~GrpcSession() override {
    if (!CheckFork(generation_)) {  // threads of the parent may hold locks
      LeaveToParent(std::move(flow_));
      LeaveToParent(std::move(background_));
      LeaveToParent(std::move(own_loop_));
      return;
    }
    flow_->Notify(nullptr);
    Change([&] { flow_->Abandon(); });
    if (own_loop_ != nullptr) WaitFor([&] { return flow_->done(); }, WaitLimit());
  }

  State state() const override {
    if (const Status allowed = CheckFork(generation_); !allowed) return {.ended = allowed.error()};
    const std::lock_guard lock(mutex());
    return flow_->state();
  }

  bool Await(const std::function<bool(const State&)>& is_ready, const WaitLimit& limit) override {
    if (!CheckFork(generation_)) return true;
    return WaitFor([&] { return is_ready(flow_->state()); }, limit);
  }

  void Send(uint64_t step_id, const ContactProblemView& problem,
            const std::optional<SolveOptions>& options, const WaitLimit& limit) override {
    SessionSteps::Step made = flow_->steps().Make(step_id, problem, options);
    Change([&] {
      if (flow_->state().ended) return;
      flow_->steps().Add(std::move(made));
      flow_->Wake();
    });
    // Else it would wait for a thread that serves the session.
    if (own_loop_ != nullptr) WaitFor([&] { return !flow_->is_writing(); }, limit);
  }

  StepOutcome Take() override {
    const std::lock_guard lock(mutex());
    return flow_->steps().Take();
  }

  Status Withdraw(uint64_t step_id) override {
    Status withdrawn;
    Change([&] {
      const bool may_go_on = flow_->steps().CanWithdraw(step_id);
      const bool was_written = flow_->steps().Withdraw(step_id);
      if (!may_go_on) {
        const Error why{ErrorCode::kCancelled,
                        "a step was withdrawn, and the session may not reconnect", ""};
        flow_->EndWith(why);
        withdrawn = tl::unexpected(why);
      }
      if (was_written) flow_->GiveStreamUp();
    });
    return withdrawn;
  }

  void Reset() override {
    const std::lock_guard lock(mutex());
    flow_->Reset();
  }

  Status Close() override {
    Change([&] { flow_->Close(); });
    WaitFor([&] { return flow_->done(); }, WaitLimit());
    return flow_->closed();
  }

  void Notify(std::function<void()> changed) override { flow_->Notify(std::move(changed)); }

 private:
  Events::Mutex& mutex() const { return flow_->events().mutex(); }

  template <typename Body>
  void Change(const Body& body) {
    {
      const std::lock_guard lock(mutex());
      body();
    }
    flow_->AfterChange();
  }

  // Waits, and serves the session meanwhile unless it is in the background.
  template <typename Condition>
  bool WaitFor(const Condition& is_so, const WaitLimit& limit) {
    std::unique_lock lock(mutex());
    while (!is_so()) {
      if (StopToken(limit.cancelled, limit.until).Requested()) return false;
      Clock::time_point until = limit.until;
      if (limit.cancelled != nullptr) until = std::min(until, Clock::now() + kFlagPeriod);
      if (own_loop_ != nullptr) {
        lock.unlock();
        own_loop_->HandleNext(until);
        lock.lock();
      } else if (until == kNever) {
        flow_->changed().wait(lock);
      } else {
        flow_->changed().wait_until(lock, until);
      }
    }
    return true;
  }

  const int generation_{ForkGeneration()};
  std::shared_ptr<BackgroundLoop> background_;
  std::unique_ptr<EventLoop> own_loop_;
  std::shared_ptr<SessionFlow> flow_;
};

}  // namespace

tl::expected<std::unique_ptr<StepStream>, Error> OpenGrpcSession(
    const SessionResources& resources, const v1::SolveSessionRequest& request, Timeout deadline) {
  auto session = std::make_unique<GrpcSession>(resources, request, deadline);
  if (resources.background != nullptr || resources.opens_later) return session;
  const WaitLimit limit{.cancelled = resources.start.call.cancelled};
  const auto is_open = [](const StepStream::State& state) { return !state.opening; };
  if (!session->Await(is_open, limit)) {
    return tl::unexpected(CallCancelled());
  }
  if (auto ended = session->state().ended) return tl::unexpected(*std::move(ended));
  return session;
}

}  // namespace sap::client
