// The calls of the C interface in this process: structs to the engine, its answers to structs.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "client/c/backend.h"
#include "client/c/struct_reader.h"
#include "solver/engine/engine.h"
#include "solver/engine/engine_session.h"

namespace sap::c {

// A step is solved when it is sent, and its outcome kept until it is taken.
class InProcessSession final : public SessionBackend {
 public:
  InProcessSession(std::shared_ptr<Engine> engine, const GivenOptions& options,
                   CallLimits::Clock::time_point deadline)
      : session_(std::move(engine)), options_(options), deadline_(deadline) {}

  Status Step(const sap_problem* problem, const sap_options* options, const CallSettings& call,
              AnswerContent* answer) override;
  Status Send(const sap_problem* problem, const sap_options* options, const CallSettings& call,
              AnswerContent* answer) override;
  bool AwaitOpen(const Wait&) override { return true; }
  bool AwaitOutcome(const Wait&) override { return true; }
  bool AwaitRoom(const Wait&) override { return true; }
  Status Take(const CallSettings& call, std::unique_ptr<AnswerContent>* answer) override;
  Status Notify(sap_callback changed, void* context) override;
  Status Withdraw(uint64_t step_id) override;
  Status Reset() override;
  Status Close(const CallSettings& call) override;
  int in_flight() const override { return static_cast<int>(kept_.size()); }
  bool draining() const override { return false; }
  bool open() const override { return CheckOpen().has_value(); }

 private:
  Status CheckOpen() const;
  Status CheckIdle() const;
  Status Solve(const sap_problem* problem, const sap_options* options, CallLimits limits,
               AnswerContent* answer);

  EngineSession session_;
  const GivenOptions options_;  // of steps that have none
  const CallLimits::Clock::time_point deadline_;
  uint64_t last_step_id_{0};
  bool closed_{false};
  sap_callback changed_{nullptr};
  void* context_{nullptr};
  std::deque<std::unique_ptr<AnswerContent>> kept_;
  std::unique_ptr<AnswerContent> spare_;  // content that was replaced, with its memory
};

}  // namespace sap::c
