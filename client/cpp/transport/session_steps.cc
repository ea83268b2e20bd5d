#include "client/cpp/transport/session_steps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/request_bytes.h"

namespace sap::client {
namespace {

const std::array<std::string, 3> kNeededFields = {"velocity", "island_of_tree", "islands"};

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

void Remove(const Unwanted& unwanted, Solution* solution) {
  if (unwanted[0]) solution->velocity.clear();
  if (unwanted[1]) solution->island_of_tree.clear();
  if (unwanted[2]) solution->islands.clear();
}

}  // namespace

SessionSteps::SessionSteps(bool keeps_velocities, v1::SolveOptions* options_of_session)
    : keeps_velocities_(keeps_velocities) {
  if (keeps_velocities_) unwanted_ = Widen(options_of_session);
}

SessionSteps::Step SessionSteps::Make(uint64_t step_id, const ContactProblemView& problem,
                                      const std::optional<SolveOptions>& options) const {
  Step step;
  step.id = step_id;
  step.unwanted = unwanted_;
  std::optional<v1::SolveOptions> message;
  if (options) {
    ToMessage(*options, &message.emplace());
    if (keeps_velocities_) step.unwanted = Widen(&*message);
  }
  step.request = StepRequestBytes(step_id, problem, message);
  return step;
}

const grpc::ByteBuffer* SessionSteps::Next(int max_in_flight) {
  const int most = needs_guess_ ? 1 : max_in_flight;
  if (written_ >= std::min(most, unanswered())) return nullptr;
  Step& step = unanswered_[written_];
  if (needs_guess_) {
    v1::SolveSessionRequest request = ParseStep(step.request);
    if (last_velocities_.SetGuess(request.mutable_step()->mutable_problem())) {
      step.has_last_velocities = true;
    }
    step.request = Serialize(request);
  }
  return &step.request;
}

void SessionSteps::RestartStream() {
  written_ = 0;
  needs_guess_ = last_velocities_.known();
}

void SessionSteps::Answer(const v1::StepOutcome& outcome) {
  Step& step = unanswered_.front();
  Arrived& arrived = arrived_.emplace_back();
  arrived.outcome = {.step_id = outcome.step_id(),
                     .warm_started = outcome.warm_started(),
                     .solution = FromMessage(outcome.outcome())};
  if (arrived.outcome.solution) {
    Solution& solution = *arrived.outcome.solution;
    needs_guess_ = false;
    arrived.outcome.warm_started |= step.has_last_velocities;
    if (keeps_velocities_) {
      LastVelocities now = std::move(spare_velocities_);
      now.Remember(step.request, solution);
      arrived.before = std::exchange(last_velocities_, std::move(now));
    }
    Remove(step.unwanted, &solution);
  }
  unanswered_.pop_front();
  --written_;
}

StepOutcome SessionSteps::Take() {
  StepOutcome outcome = std::move(arrived_.front().outcome);
  if (arrived_.front().before) spare_velocities_ = *std::move(arrived_.front().before);
  arrived_.pop_front();
  return outcome;
}

bool SessionSteps::CanWithdraw(uint64_t step_id) const {
  if (keeps_velocities_) return true;
  const bool answered = !arrived_.empty() && arrived_.back().outcome.step_id >= step_id;
  const bool written = written_ > 0 && unanswered_[written_ - 1].id >= step_id;
  return !answered && !written;
}

bool SessionSteps::Withdraw(uint64_t step_id) {
  bool was_written = false;
  while (!unanswered_.empty() && unanswered_.back().id >= step_id) {
    if (written_ == unanswered()) {
      --written_;
      was_written = true;
    }
    unanswered_.pop_back();
  }
  while (!arrived_.empty() && arrived_.back().outcome.step_id >= step_id) {
    if (arrived_.back().before) {
      last_velocities_ = *std::move(arrived_.back().before);
      needs_guess_ = true;
    }
    arrived_.pop_back();
  }
  return was_written;
}

void SessionSteps::Reset() {
  last_velocities_ = {};
  needs_guess_ = true;
}

}  // namespace sap::client
