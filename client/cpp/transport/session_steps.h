// The steps of a session, from Send to Take, and the velocities between them. Internal.
//
//   unanswered: [written to the stream | not yet]  -> arrived: outcomes that were not taken
//
// Each outcome keeps the velocities before its step, so that the step can be withdrawn.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "client/cpp/session.h"
#include "client/cpp/transport/last_velocities.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

// Fields of a solution that the response mask excluded, and that LastVelocities needs.
using Unwanted = std::array<bool, 3>;

class SessionSteps {
 public:
  // `keeps_velocities`: whether a new stream may follow a lost one.
  SessionSteps(bool keeps_velocities, v1::SolveOptions* options_of_session);

  struct Step {
    uint64_t id{0};
    grpc::ByteBuffer request;  // a SolveSessionRequest
    Unwanted unwanted{};
    bool has_last_velocities{false};  // as its guess, on a new stream
  };

  int unanswered() const { return static_cast<int>(unanswered_.size()); }
  int arrived() const { return static_cast<int>(arrived_.size()); }
  int written() const { return written_; }

  // Thread-safe: a step, whose options may be absent.
  Step Make(uint64_t step_id, const ContactProblemView& problem,
            const std::optional<SolveOptions>& options) const;
  // Gives it the last place in the row.
  void Add(Step step) { unanswered_.push_back(std::move(step)); }

  // The next step to write to a stream that takes at most `max_in_flight` unanswered ones; null:
  // there is none. On a stream that does not know the last velocities only one is written, until a
  // step is solved: where it fails, the next one needs the guess.
  const grpc::ByteBuffer* Next(int max_in_flight);
  void MarkWritten() { ++written_; }

  // A stream begins that knows nothing.
  void RestartStream();

  // The outcome of the oldest step.
  void Answer(const v1::StepOutcome& outcome);
  StepOutcome Take();

  // Removes the steps from this one on. Returns whether one of them may be on the stream, which is
  // of no use then.
  bool Withdraw(uint64_t step_id);
  // Whether that would forget velocities that are not kept.
  bool CanWithdraw(uint64_t step_id) const;

  // The next step starts as the first one.
  void Reset();
  // Drops the steps without an outcome.
  void Abandon() { unanswered_.clear(); }

 private:
  struct Arrived {
    StepOutcome outcome;
    std::optional<LastVelocities> before;  // the step; absent: it was not solved
  };

  const bool keeps_velocities_;
  Unwanted unwanted_{};  // by the options of the session

  std::deque<Step> unanswered_;
  int written_{0};  // how many of them, from the first on, were written to the stream
  std::deque<Arrived> arrived_;
  LastVelocities spare_velocities_;

  LastVelocities last_velocities_;
  bool needs_guess_{false};  // the server does not have the last velocities
};

}  // namespace sap::client
