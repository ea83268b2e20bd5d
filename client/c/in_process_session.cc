#include <string>
#include <utility>

#include "client/c/in_process.h"

namespace sap::c {

Status InProcessSession::CheckOpen() const {
  if (closed_) return Fail(SAP_UNAVAILABLE, "the session is closed");
  if (CallLimits::Clock::now() < deadline_) return {};
  return Fail(SAP_DEADLINE_EXCEEDED, "the deadline of the session has passed");
}

Status InProcessSession::CheckIdle() const {
  if (kept_.empty()) return {};
  return Fail(SAP_INVALID_ARGUMENT,
              std::to_string(kept_.size()) + " steps are in flight; take their outcomes first");
}

Status InProcessSession::Solve(const sap_problem* problem, const sap_options* options,
                               CallLimits limits, AnswerContent* answer) {
  limits.deadline = deadline_;
  auto own = options_;
  if (options != nullptr) {
    const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return Fail(given.error());
    own = *given;
  }
  const auto read = ReadProblem(problem);
  if (!read) return Fail(read.error());
  SolveAnswer solved;
  const EngineStatus status =
      session_.Step({read->view, {own.solver, own.time_budget}}, limits, &solved);
  if (!status) return StatusOf(status);
  answer->solution = std::move(solved.solution);
  answer->SetSolution({.decode_s = solved.check_s}, solved.warm_started, own.mask);
  return {};
}

Status InProcessSession::Step(const sap_problem* problem, const sap_options* options,
                              const CallSettings& call, AnswerContent* answer) {
  if (Status open = CheckOpen().and_then([&] { return CheckIdle(); }); !open) return open;
  answer->set_step_id(++last_step_id_);
  return Solve(problem, options, call.limits, answer);
}

Status InProcessSession::Send(const sap_problem* problem, const sap_options* options,
                              const CallSettings& call, AnswerContent* answer) {
  if (Status open = CheckOpen(); !open) return open;
  auto kept = spare_ ? std::move(spare_) : std::make_unique<AnswerContent>();
  kept->set_step_id(++last_step_id_);
  Status solved = Solve(problem, options, call.limits, kept.get());
  // As from a server, the deadline is that of the session, not of the step.
  if (Status open = CheckOpen(); !open) return open;
  if (!solved) kept->SetError(std::move(solved.error()));
  answer->set_step_id(last_step_id_);
  kept_.push_back(std::move(kept));
  if (changed_ != nullptr) changed_(context_);
  return {};
}

Status InProcessSession::Take(const CallSettings&, std::unique_ptr<AnswerContent>* answer) {
  if (kept_.empty()) {
    if (Status open = CheckOpen(); !open) return open;
    return Fail(SAP_INVALID_ARGUMENT, "no step is in flight");
  }
  spare_ = std::exchange(*answer, std::move(kept_.front()));
  kept_.pop_front();
  return {};
}

Status InProcessSession::Notify(sap_callback changed, void* context) {
  changed_ = changed;
  context_ = context;
  return {};
}

Status InProcessSession::Withdraw(uint64_t) {
  return Fail(SAP_FAILED_PRECONDITION, "a step in this process is solved when it is sent");
}

Status InProcessSession::Reset() {
  if (Status open = CheckOpen().and_then([&] { return CheckIdle(); }); !open) return open;
  session_.Reset();
  return {};
}

Status InProcessSession::Close(const CallSettings&) {
  if (Status open = CheckOpen(); !open) return open;
  closed_ = true;
  kept_.clear();
  return {};
}

}  // namespace sap::c
