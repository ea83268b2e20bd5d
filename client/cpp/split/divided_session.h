// A session whose steps are divided as calls of Solve are, if its first one is large: its state,
// the velocities of the last solved step, stays at the client, and each step is a call of Solve
// with these as its guess, which has the bits of a step at the server. Else a stream of steps.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "client/cpp/backend/backend.h"
#include "client/cpp/split/split_solver.h"
#include "client/cpp/transport/server_identity.h"
#include "solver/problem/named_velocities.h"
#include "solver/problem/problem_layout.h"

namespace sap::client {

class DividedSession final : public StepStream {
 public:
  // `stream`: of steps that are not divided, opened. The owner of the solver owns the backend.
  DividedSession(std::unique_ptr<StepStream> stream, std::shared_ptr<SplitSolver> solver,
                 Backend* backend, const SolveOptions& options, Timeout deadline);

  State state() const override;
  bool Await(const std::function<bool(const State&)>& is_ready, const WaitLimit& limit) override;
  // The first call decides. A divided step is solved within it.
  void Send(uint64_t step_id, const ContactProblemView& problem,
            const std::optional<SolveOptions>& options, const WaitLimit& limit) override;
  StepOutcome Take() override;
  Status Withdraw(uint64_t step_id) override;
  void Reset() override;
  Status Close() override { return stream_ != nullptr ? stream_->Close() : Status(); }
  // Where steps are divided nothing has to be waited for.
  void Notify(std::function<void()> changed) override {
    if (stream_ != nullptr) stream_->Notify(std::move(changed));
  }

 private:
  using Clock = std::chrono::steady_clock;

  tl::expected<Solution, Error> Step(const ContactProblemView& problem, SolveOptions options,
                                     bool* warm_started);
  bool FillGuess(ContactProblemView* problem);

  std::unique_ptr<StepStream> stream_;  // null once steps are divided
  bool begun_{false};                   // there was a step
  const std::shared_ptr<SplitSolver> solver_;
  Backend* const backend_;
  const SolveOptions options_;  // of steps without options
  const Clock::time_point deadline_;
  BuildPin pin_;
  ProblemLayout layout_;  // of the step
  NamedVelocities last_velocities_;
  std::vector<double> guess_;
  std::deque<StepOutcome> outcomes_;
  std::optional<Error> ended_;
};

}  // namespace sap::client
