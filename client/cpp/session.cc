#include "client/cpp/session.h"

#include <deque>
#include <string>
#include <utility>

#include "client/cpp/transport/backend.h"

namespace sap::client {

struct Session::State {
  explicit State(std::unique_ptr<StepStream> steps) : stream(std::move(steps)) {}

  std::unique_ptr<StepStream> stream;
  uint64_t last_step_id{0};
  int at_server{0};                  // steps sent whose outcome has not arrived
  std::deque<StepOutcome> received;  // by Send, kept for Receive
  std::optional<Error> ended;        // why no more steps can be sent
};

Session::Session(std::unique_ptr<StepStream> stream)
    : state_(std::make_unique<State>(std::move(stream))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

int Session::in_flight() const {
  return state_->at_server + static_cast<int>(state_->received.size());
}

bool Session::draining() const { return state_->stream->draining(); }

bool Session::open() const { return !state_->ended; }

tl::expected<Solution, Error> Session::Step(const Problem& problem,
                                            const std::optional<SolveOptions>& options) {
  if (in_flight() > 0) {
    return tl::unexpected(Error{
        ErrorCode::kInvalidArgument,
        std::to_string(in_flight()) + " steps are in flight; receive their outcomes first", ""});
  }
  if (const auto sent = Send(problem, options); !sent) return tl::unexpected(sent.error());
  auto outcome = Receive();
  if (!outcome) return tl::unexpected(outcome.error());
  return std::move(outcome->solution);
}

tl::expected<uint64_t, Error> Session::Send(const Problem& problem,
                                            const std::optional<SolveOptions>& options) {
  State& state = *state_;
  if (state.ended) return tl::unexpected(*state.ended);
  if (options && options->deadline) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "a step has no deadline of its own; give it a time budget",
                                "options.deadline"});
  }
  if (state.at_server >= state.stream->max_steps_in_flight()) {
    if (const auto kept = KeepNextOutcome(); !kept) return tl::unexpected(kept.error());
  }
  if (state.stream->Send(++state.last_step_id, problem, options)) {
    ++state.at_server;
    return state.last_step_id;
  }
  while (true) {
    if (const auto kept = KeepNextOutcome(); !kept) return tl::unexpected(kept.error());
  }
}

tl::expected<StepOutcome, Error> Session::Receive() {
  State& state = *state_;
  if (!state.received.empty()) {
    StepOutcome outcome = std::move(state.received.front());
    state.received.pop_front();
    return outcome;
  }
  if (state.ended) return tl::unexpected(*state.ended);
  if (state.at_server == 0) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument, "no step is in flight", ""});
  }
  return ReceiveFromServer();
}

tl::expected<void, Error> Session::KeepNextOutcome() {
  auto outcome = ReceiveFromServer();
  if (!outcome) return tl::unexpected(outcome.error());
  state_->received.push_back(std::move(*outcome));
  return {};
}

tl::expected<StepOutcome, Error> Session::ReceiveFromServer() {
  State& state = *state_;
  auto received = state.stream->Receive();
  if (!received) {
    state.ended = received.error();
    state.at_server = 0;
    return received;
  }
  --state.at_server;
  return received;
}

tl::expected<void, Error> Session::Close() {
  State& state = *state_;
  if (state.ended) return tl::unexpected(*state.ended);
  state.ended = Error{ErrorCode::kInvalidArgument, "the session is closed", ""};
  return state.stream->Close();
}

}  // namespace sap::client
