#include "client/cpp/session.h"

#include <string>
#include <utility>

#include "client/cpp/backend/backend.h"

namespace sap::client {
namespace {

tl::unexpected<Error> Stopped() {
  return tl::unexpected(
      Error{ErrorCode::kCancelled, "the wait was stopped; the step has no effect", ""});
}

}  // namespace

Session::Session(std::unique_ptr<StepStream> stream) : stream_(std::move(stream)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

int Session::in_flight() const {
  const StepStream::State state = stream_->state();
  return state.unanswered + state.arrived;
}

bool Session::draining() const { return stream_->state().draining; }

bool Session::opening() const { return stream_->state().opening; }

bool Session::open() const { return !end_reason(); }

std::optional<Error> Session::end_reason() const {
  return closed_ ? closed_ : stream_->state().ended;
}

tl::expected<Solution, Error> Session::Step(const ContactProblemView& problem,
                                            const std::optional<SolveOptions>& options,
                                            const WaitLimit& limit) {
  if (const int steps = in_flight(); steps > 0 && !closed_) {
    return tl::unexpected(
        Error{ErrorCode::kInvalidArgument,
              std::to_string(steps) + " steps are in flight; receive their outcomes first", ""});
  }
  const auto sent = Send(problem, options, limit);
  if (!sent) return tl::unexpected(sent.error());
  if (!AwaitOutcome(limit)) {
    if (const auto withdrawn = Withdraw(*sent); !withdrawn) {
      return tl::unexpected(withdrawn.error());
    }
    return Stopped();
  }
  auto outcome = Receive();
  if (!outcome) return tl::unexpected(outcome.error());
  return std::move(outcome->solution);
}

tl::expected<uint64_t, Error> Session::Send(const ContactProblemView& problem,
                                            const std::optional<SolveOptions>& options,
                                            const WaitLimit& limit) {
  if (options && options->deadline) {
    if (const auto ended = end_reason()) return tl::unexpected(*ended);
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "a step has no deadline of its own; give it a time budget",
                                "options.deadline"});
  }
  if (!closed_ && !AwaitRoom(limit)) return Stopped();
  if (const auto ended = end_reason()) return tl::unexpected(*ended);
  stream_->Send(++last_step_id_, problem, options, limit);
  return last_step_id_;
}

tl::expected<StepOutcome, Error> Session::Receive() {
  if (closed_) return tl::unexpected(*closed_);
  AwaitOutcome(WaitLimit());
  const StepStream::State state = stream_->state();
  if (state.arrived > 0) return stream_->Take();
  if (state.ended) return tl::unexpected(*state.ended);
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, "no step is in flight", ""});
}

bool Session::OutcomeReady() const { return closed_ || stream_->state().OutcomeReady(); }

bool Session::RoomReady() const { return closed_ || stream_->state().RoomReady(); }

bool Session::AwaitOutcome(const WaitLimit& limit) {
  return closed_ || stream_->Await([](const auto& state) { return state.OutcomeReady(); }, limit);
}

bool Session::AwaitRoom(const WaitLimit& limit) {
  return closed_ || stream_->Await([](const auto& state) { return state.RoomReady(); }, limit);
}

bool Session::AwaitOpen(const WaitLimit& limit) {
  return closed_ || stream_->Await([](const auto& state) { return !state.opening; }, limit);
}

void Session::Notify(std::function<void()> changed) { stream_->Notify(std::move(changed)); }

tl::expected<void, Error> Session::Withdraw(uint64_t step_id) {
  if (const auto ended = end_reason()) return tl::unexpected(*ended);
  return stream_->Withdraw(step_id);
}

tl::expected<void, Error> Session::Reset() {
  if (const auto ended = end_reason()) return tl::unexpected(*ended);
  if (const int steps = in_flight(); steps > 0) {
    return tl::unexpected(
        Error{ErrorCode::kInvalidArgument,
              std::to_string(steps) + " steps are in flight; receive their outcomes first", ""});
  }
  stream_->Reset();
  return {};
}

tl::expected<void, Error> Session::Close() {
  if (const auto ended = end_reason()) return tl::unexpected(*ended);
  closed_ = Error{ErrorCode::kUnavailable, "the session is closed", ""};
  return stream_->Close();
}

}  // namespace sap::client
