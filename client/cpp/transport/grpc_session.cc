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
#include "client/cpp/transport/session_call.h"

namespace sap::client {
namespace {

using Clock = SessionCall::Clock;

constexpr std::chrono::milliseconds kBetweenAttempts{50};
// A step that ends so many streams, and over the whole time to reconnect, is not sent again: it may
// be what ends them.
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

// Whether the stream ended for reasons of its connection or its server, not of its messages. The
// server itself ends no stream with INTERNAL, but gRPC and proxies report a lost connection so.
bool IsLoss(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kCancelled ||
         error.code == ErrorCode::kAborted || error.code == ErrorCode::kInternal;
}

// A server that has not noticed the loss may still count the old stream against its limit.
bool MayRetryToOpen(const Error& error) {
  return IsLoss(error) || error.code == ErrorCode::kResourceExhausted;
}

struct Step {
  v1::SolveSessionRequest request;
  Unwanted unwanted{};
  bool has_last_velocities{false};  // as its guess, on a new stream
};

class GrpcSession final : public SessionStream {
 public:
  GrpcSession(std::shared_ptr<v1::SolverService::Stub> stub, const CallStart& start,
              v1::SolveSessionRequest open, Transport::Timeout deadline,
              std::chrono::nanoseconds reconnect_within)
      : stub_(std::move(stub)),
        start_(start),
        open_(std::move(open)),
        reconnect_within_(std::chrono::duration_cast<Clock::duration>(reconnect_within)) {
    if (deadline) deadline_ = Clock::now() + *deadline;
    if (reconnects()) unwanted_ = Widen(open_.mutable_open()->mutable_options());
  }

  ~GrpcSession() override {
    if (call_ == nullptr) return;
    call_->Cancel();
    call_->Finish();
  }

  Transport::Status Open() { return OpenCall(kNever); }

  int max_steps_in_flight() const override { return credits_; }
  bool draining() const override { return draining_; }

  bool Send(v1::SolveSessionRequest* request) override {
    if (draining_ && !opened_draining_ && unanswered_.empty() && reconnects()) LeaveServer();
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
    return WriteSteps() || reconnects();
  }

  Transport::Status Receive(v1::SolveSessionResponse* response) override {
    while (call_ == nullptr || !call_->Read(response)) {
      if (Transport::Status again = Reconnect(End()); !again) return again;
    }
    if (!response->has_step() || unanswered_.empty()) {
      return tl::unexpected(Error{ErrorCode::kInternal, "the response is not that of a step", ""});
    }
    losses_ = 0;
    if (response->credits() > 0) {
      credits_ = static_cast<int>(std::min<uint32_t>(response->credits(), max_in_flight_));
    }
    draining_ = response->draining();
    TakeOutcome(response->mutable_step());
    WriteSteps();
    return {};
  }

  // A loss is no error where no step is left.
  Transport::Status Close() override {
    if (call_ == nullptr) return {};
    if (unanswered_.empty() && reconnects()) call_->SetLimit(Clock::now() + reconnect_within_);
    const std::unique_ptr<SessionCall> call = std::exchange(call_, nullptr);
    const grpc::Status status = call->Close();
    Transport::Status closed = FromRpcStatus(status, call->context());
    if (!closed && unanswered_.empty() && IsLoss(closed.error())) return {};
    return closed;
  }

 private:
  bool reconnects() const { return reconnect_within_ > Clock::duration::zero(); }

  // Opens a call in place of call_; without success by the limit there is none.
  Transport::Status OpenCall(Clock::time_point limit) {
    Transport::Timeout left;
    if (deadline_) left = *deadline_ - Clock::now();
    const auto without_connection = limit == kNever ? SessionCall::WithoutConnection::kFails
                                                    : SessionCall::WithoutConnection::kWaits;
    call_ = std::make_unique<SessionCall>(stub_.get(), start_, left, open_.open().low_latency(),
                                          without_connection, limit);
    v1::SolveSessionResponse response;
    call_->Write(open_);  // if this fails, so does the read
    if (!call_->Read(&response)) return tl::unexpected(End());
    call_->SetLimit(kNever);
    // Absent counts as 1.
    max_in_flight_ = static_cast<int>(
        std::clamp(response.opened().max_steps_in_flight(), uint32_t{1}, uint32_t{1} << 20));
    credits_ = max_in_flight_;
    draining_ = opened_draining_ = response.draining();
    written_ = 0;
    needs_guess_ = has_solved_;
    return {};
  }

  // Ends the call, and returns why there is nothing more to read.
  Error End() {
    if (call_ == nullptr) return {ErrorCode::kUnavailable, "the session has no connection", ""};
    const std::unique_ptr<SessionCall> call = std::exchange(call_, nullptr);
    const grpc::Status status = call->Finish();
    if (!status.ok()) return ToError(status, call->context());
    return {ErrorCode::kUnavailable, "the server has ended the session", "", "ENDED"};
  }

  // Opens a new call and sends the steps without an outcome again, or returns why the session has
  // ended.
  Transport::Status Reconnect(const Error& why) {
    if (!reconnects() || !IsLoss(why)) return tl::unexpected(why);
    const Clock::time_point lost = Clock::now();
    if (losses_++ == 0) first_loss_ = lost;
    if (losses_ > kMaxLosses && lost > first_loss_ + reconnect_within_) return tl::unexpected(why);
    const Clock::time_point until = lost + reconnect_within_;
    if (losses_ > 1) std::this_thread::sleep_for(kBetweenAttempts);
    while (true) {
      Transport::Status opened = OpenCall(until);
      if (opened) break;
      if (!MayRetryToOpen(opened.error())) return opened;
      if (Clock::now() + kBetweenAttempts >= until) return tl::unexpected(why);
      std::this_thread::sleep_for(kBetweenAttempts);
    }
    WriteSteps();
    return {};
  }

  // The server will shut down, and no step is in flight: opens a call that another server may take.
  void LeaveServer() {
    const Clock::time_point until = Clock::now() + reconnect_within_;
    std::unique_ptr<SessionCall> old = std::move(call_);
    if (!OpenCall(until)) {
      call_ = std::move(old);
      opened_draining_ = true;
      return;
    }
    old->SetLimit(until);
    old->Close();
  }

  // Writes the steps that the server takes now. On a new stream only the first one, until a step is
  // solved: where it fails, the next one needs the guess. False if the stream has ended.
  bool WriteSteps() {
    if (call_ == nullptr) return false;
    const size_t most = needs_guess_ ? 1 : max_in_flight_;
    for (; written_ < std::min(most, unanswered_.size()); ++written_) {
      Step& step = unanswered_[written_];
      if (needs_guess_ &&
          last_velocities_.SetGuess(step.request.mutable_step()->mutable_problem())) {
        step.has_last_velocities = true;
      }
      if (!call_->Write(step.request)) return false;
    }
    return true;
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

  const std::shared_ptr<v1::SolverService::Stub> stub_;
  const CallStart start_;
  v1::SolveSessionRequest open_;
  const Clock::duration reconnect_within_;
  std::optional<Clock::time_point> deadline_;
  Unwanted unwanted_{};  // by the options of the session

  std::unique_ptr<SessionCall> call_;  // null: lost
  int max_in_flight_{1};
  int credits_{1};
  bool draining_{false};
  bool opened_draining_{false};  // the server was draining from the first response on

  std::deque<Step> unanswered_;
  size_t written_{0};        // how many of them, from the first on, were written to the call
  std::vector<Step> spare_;  // storage of answered steps

  LastVelocities last_velocities_;
  bool has_solved_{false};
  bool needs_guess_{false};  // the server does not have the last velocities
  int losses_{0};            // since the last outcome
  Clock::time_point first_loss_;
};

}  // namespace

tl::expected<std::unique_ptr<SessionStream>, Error> OpenGrpcSession(
    std::shared_ptr<v1::SolverService::Stub> stub, const CallStart& start,
    const v1::SolveSessionRequest& request, Transport::Timeout deadline,
    std::chrono::nanoseconds reconnect_within) {
  auto session =
      std::make_unique<GrpcSession>(std::move(stub), start, request, deadline, reconnect_within);
  if (const auto opened = session->Open(); !opened) return tl::unexpected(opened.error());
  return session;
}

}  // namespace sap::client
