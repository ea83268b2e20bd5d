#include "client/cpp/transport/grpc_session.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/cpp/transport/last_velocities.h"
#include "client/cpp/transport/loss.h"
#include "client/cpp/transport/retry.h"
#include "client/cpp/transport/session_call.h"

namespace sap::client {
namespace {

using Clock = SessionCall::Clock;

using WithoutConnection = SessionCall::WithoutConnection;

// Between attempts to leave a server that will shut down, and the longest that one takes.
constexpr std::chrono::milliseconds kBetweenMoves{500};
// A call that is left is closed in good order within this time, else cancelled.
constexpr std::chrono::milliseconds kClosing{50};
// A step with which servers end so many streams, and over the whole time to reconnect, is not sent
// again.
constexpr int kMaxLosses = 10;
constexpr Clock::time_point kNever = Clock::time_point::max();

// Fields of a solution that LastVelocities needs.
const std::array<std::string, 3> kNeededFields = {"velocity", "island_of_tree", "islands"};

// Which of the needed fields a response mask excluded.
using Unwanted = std::array<bool, kNeededFields.size()>;

// Adds the needed fields to the response mask.
Unwanted Widen(v1::SolveOptions* options) {
  Unwanted unwanted{};
  if (options->response_mask().paths().empty()) return unwanted;
  auto* paths = options->mutable_response_mask()->mutable_paths();
  for (size_t i = 0; i < kNeededFields.size(); ++i) {
    unwanted[i] = std::ranges::find(*paths, kNeededFields[i]) == paths->end();
    if (unwanted[i]) *paths->Add() = kNeededFields[i];
  }
  return unwanted;
}

void Remove(const Unwanted& unwanted, v1::ContactSolution* solution) {
  if (unwanted[0]) solution->clear_velocity();
  if (unwanted[1]) solution->clear_island_of_tree();
  if (unwanted[2]) solution->clear_islands();
}

// Before its first stream is open, a session is like any call. Later a server that has not noticed
// the loss may still count the old stream against its limit.
bool MayRetryToOpen(const Error& error, bool was_open) {
  return IsLoss(error, CallKind::kSession) ||
         (was_open && error.code == ErrorCode::kResourceExhausted);
}

struct Step {
  v1::SolveSessionRequest request;
  Unwanted unwanted{};
  bool has_last_velocities{false};  // as its guess, on a new stream
};

class GrpcSession final : public SessionStream {
 public:
  GrpcSession(const SessionResources& resources, v1::SolveSessionRequest open,
              Transport::Timeout deadline)
      : client_(resources),
        open_(std::move(open)),
        reconnect_within_(std::chrono::duration_cast<Clock::duration>(resources.reconnect_within)) {
    if (deadline) deadline_ = Clock::now() + *deadline;
    if (reconnects()) unwanted_ = Widen(open_.mutable_open()->mutable_options());
  }

  ~GrpcSession() override {
    if (call_ == nullptr) return;
    call_->Cancel();
    call_->Finish();
  }

  Transport::Status Open() {
    auto opened = OpenCall(WithoutConnection::kFails, kNever);
    if (!opened) return Reconnect(opened.error(), /*was_open=*/false);
    Use(std::move(*opened));
    return {};
  }

  int max_steps_in_flight() const override { return credits_; }
  bool draining() const override { return draining_; }

  bool Send(v1::SolveSessionRequest* request) override {
    Step& step = unanswered_.emplace_back();
    if (!spare_.empty()) {
      std::swap(step, spare_.back());
      spare_.pop_back();
    }
    step.request.Swap(request);
    step.has_last_velocities = false;
    step.unwanted = unwanted_;
    if (reconnects() && step.request.step().has_options()) {
      step.unwanted = Widen(step.request.mutable_step()->mutable_options());
    }
    // After a loss Receive sends the step again.
    return SendSteps() || reconnects();
  }

  Transport::Status Receive(v1::SolveSessionResponse* response) override {
    while (!Read(response)) {
      Transport::Status again = Reconnect(EndCall(), /*was_open=*/true);
      if (!again) return again;
      SendSteps();
    }
    if (!response->has_step() || unanswered_.empty()) {
      return tl::unexpected(Error{ErrorCode::kInternal, "the response is not that of a step", ""});
    }
    losses_ = lost_attempts_ = 0;
    pauses_.Restart();
    if (response->credits() > 0) {
      credits_ = static_cast<int>(std::min<uint32_t>(response->credits(), max_in_flight_));
    }
    draining_ = response->draining();
    TakeOutcome(response->mutable_step());
    SendSteps();
    return {};
  }

  // A loss is no error where no step is left.
  Transport::Status Close() override {
    if (call_ == nullptr) return {};
    if (unanswered_.empty() && reconnects()) call_->SetLimit(Clock::now() + reconnect_within_);
    const std::unique_ptr<SessionCall> call = std::exchange(call_, nullptr);
    const grpc::Status status = call->Close();
    Transport::Status closed = FromRpcStatus(status, call->context());
    if (!closed && unanswered_.empty() && IsLoss(closed.error(), CallKind::kSession)) return {};
    return closed;
  }

 private:
  // A call whose server has opened the session.
  struct OpenedCall {
    std::unique_ptr<SessionCall> call;
    v1::SolveSessionResponse response;
  };

  bool reconnects() const { return reconnect_within_ > Clock::duration::zero(); }

  // Cancelled at the limit.
  tl::expected<OpenedCall, Error> OpenCall(WithoutConnection without_connection,
                                           Clock::time_point limit) {
    Transport::Timeout left;
    if (deadline_) left = *deadline_ - Clock::now();
    OpenedCall opened;
    opened.call =
        std::make_unique<SessionCall>(client_.stub.get(), client_.start, left, lost_attempts_,
                                      open_.open().low_latency(), without_connection, limit);
    opened.call->Write(open_);  // if this fails, so does the read
    if (!opened.call->Read(&opened.response)) return tl::unexpected(End(std::move(opened.call)));
    opened.call->SetLimit(kNever);
    const ServerIdentity server = ParseServerIdentity(opened.response.opened().server());
    if (const auto checked = client_.build_check->Check(server); !checked) {
      CloseAside(std::move(opened.call));
      return tl::unexpected(checked.error());
    }
    return opened;
  }

  void Use(OpenedCall opened) {
    call_ = std::move(opened.call);
    // Absent counts as 1.
    max_in_flight_ = static_cast<int>(
        std::clamp(opened.response.opened().max_steps_in_flight(), uint32_t{1}, uint32_t{1} << 20));
    credits_ = max_in_flight_;
    draining_ = opened.response.draining();
    next_move_ = draining_ ? Clock::now() + kBetweenMoves : Clock::time_point::min();
    written_ = 0;
    write_failed_ = false;
    needs_guess_ = has_solved_;
  }

  bool Read(v1::SolveSessionResponse* response) {
    if (call_ == nullptr) return false;
    if (write_failed_ && written_ == 0) call_->Cancel();  // if it has not ended
    return call_->Read(response);
  }

  // Why there is nothing more to read from the call.
  static Error End(std::unique_ptr<SessionCall> call) {
    const grpc::Status status = call->Finish();
    if (!status.ok()) return ToError(status, call->context());
    return {ErrorCode::kUnavailable, "the server has ended the session", "", "ENDED"};
  }
  Error EndCall() {
    if (call_ == nullptr) return {ErrorCode::kUnavailable, "the session has no connection", ""};
    return End(std::exchange(call_, nullptr));
  }

  // Closes a call without steps.
  static void CloseAside(std::unique_ptr<SessionCall> call) {
    call->SetLimit(Clock::now() + kClosing);
    call->Close();
  }

  // Opens a call in place of the lost one, or returns why the session has ended.
  Transport::Status Reconnect(Error why, bool was_open) {
    if (!IsLoss(why, CallKind::kSession)) return tl::unexpected(why);
    // A call without steps sent nothing that could end a server.
    if (written_ == 0 && !write_failed_) why.lost_attempts = 0;
    why.lost_attempts = lost_attempts_ += why.lost_attempts;
    if (!reconnects() || lost_attempts_ >= kMaxLostAttempts) return tl::unexpected(why);
    const Clock::time_point lost = Clock::now();
    if (losses_++ == 0) first_loss_ = lost;
    if (losses_ > kMaxLosses && lost > first_loss_ + reconnect_within_) return tl::unexpected(why);
    const Clock::time_point until = lost + reconnect_within_;
    // A server that does not answer leaves time for another one.
    Clock::time_point limit = lost + reconnect_within_ / 2;
    while (true) {
      const std::chrono::milliseconds pause = pauses_.Next();
      if (Clock::now() + pause >= until) return tl::unexpected(why);
      std::this_thread::sleep_for(pause);
      auto opened = OpenCall(WithoutConnection::kWaits, limit);
      if (opened) {
        Use(std::move(*opened));
        return {};
      }
      if (!MayRetryToOpen(opened.error(), was_open)) return tl::unexpected(opened.error());
      if (Clock::now() >= limit) limit = until;
    }
  }

  // Whether the steps that are not sent yet should go to another server.
  bool IsLeaving() const { return draining_ && reconnects() && Clock::now() >= next_move_; }

  // Opens a call that another server may take, while none of the steps is at this one. Returns the
  // old call; null if the session stays.
  std::unique_ptr<SessionCall> Leave() {
    auto opened = OpenCall(WithoutConnection::kFails, Clock::now() + kBetweenMoves);
    if (opened && !opened->response.draining()) {
      std::unique_ptr<SessionCall> old = std::move(call_);
      Use(std::move(*opened));
      return old;
    }
    if (opened) CloseAside(std::move(opened->call));  // at the same server, or one like it
    next_move_ = Clock::now() + kBetweenMoves;
    return nullptr;
  }

  // Sends the steps that a server takes now. False if the stream has ended.
  bool SendSteps() {
    if (call_ == nullptr) return false;
    std::unique_ptr<SessionCall> old;
    if (IsLeaving() && written_ < unanswered_.size()) {
      if (written_ > 0) return true;  // until their outcomes are here
      old = Leave();
    }
    const bool sent = WriteSteps();
    if (old != nullptr) CloseAside(std::move(old));
    return sent;
  }

  // Writes the steps that the server takes now. On a new stream only the first one, until a step is
  // solved: where it fails, the next one needs the guess. A step whose write fails may have arrived
  // all the same: its outcome is awaited, and nothing follows it. False if the stream has ended.
  bool WriteSteps() {
    const size_t most = needs_guess_ ? 1 : max_in_flight_;
    for (; !write_failed_ && written_ < std::min(most, unanswered_.size()); ++written_) {
      Step& step = unanswered_[written_];
      if (needs_guess_ &&
          last_velocities_.SetGuess(step.request.mutable_step()->mutable_problem())) {
        step.has_last_velocities = true;
      }
      write_failed_ = !call_->Write(step.request);
    }
    if (write_failed_ && reconnects()) call_->SetLimit(Clock::now() + reconnect_within_);
    return !write_failed_;
  }

  void TakeOutcome(v1::StepOutcome* outcome) {
    Step& step = unanswered_.front();
    if (outcome->outcome().has_solution()) {
      v1::ContactSolution* solution = outcome->mutable_outcome()->mutable_solution();
      if (step.has_last_velocities) outcome->set_warm_started(true);
      if (reconnects()) {
        last_velocities_.Remember(step.request.mutable_step()->mutable_problem(), *solution);
        has_solved_ = true;
      }
      needs_guess_ = false;
      Remove(step.unwanted, solution);
    }
    spare_.push_back(std::move(step));
    unanswered_.pop_front();
    --written_;
  }

  const SessionResources client_;
  v1::SolveSessionRequest open_;
  const Clock::duration reconnect_within_;
  std::optional<Clock::time_point> deadline_;
  Unwanted unwanted_{};  // by the options of the session

  std::unique_ptr<SessionCall> call_;  // null: lost
  int max_in_flight_{1};
  int credits_{1};
  bool draining_{false};
  Clock::time_point next_move_;  // when to leave a draining server, at the earliest

  std::deque<Step> unanswered_;
  size_t written_{0};         // how many of them, from the first on, were written to the call
  bool write_failed_{false};  // the last one; the call takes no more
  std::vector<Step> spare_;   // storage of answered steps

  LastVelocities last_velocities_;
  bool has_solved_{false};
  bool needs_guess_{false};  // the server does not have the last velocities
  int losses_{0};            // since the last outcome
  int lost_attempts_{0};     // of these, with a step that was sent; see Error
  Clock::time_point first_loss_;
  RetryPauses pauses_;
};

}  // namespace

tl::expected<std::unique_ptr<SessionStream>, Error> OpenGrpcSession(
    const SessionResources& resources, const v1::SolveSessionRequest& request,
    Transport::Timeout deadline) {
  auto session = std::make_unique<GrpcSession>(resources, request, deadline);
  if (const auto opened = session->Open(); !opened) return tl::unexpected(opened.error());
  return session;
}

}  // namespace sap::client
