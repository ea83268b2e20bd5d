// A session at servers behind the C interface.
#pragma once

#include <memory>

#include "client/c/backend.h"
#include "client/cpp/session.h"

namespace sap::c {

class RemoteSession final : public SessionBackend {
 public:
  explicit RemoteSession(client::Session session) : session_(std::move(session)) {}

  Status Step(const sap_problem* problem, const sap_options* options, const CallSettings& call,
              AnswerContent* answer) override;
  Status Send(const sap_problem* problem, const sap_options* options, const CallSettings& call,
              AnswerContent* answer) override;
  bool AwaitOpen(const Wait& wait) override;
  bool AwaitOutcome(const Wait& wait) override;
  bool AwaitRoom(const Wait& wait) override;
  Status Take(const CallSettings& call, std::unique_ptr<AnswerContent>* answer) override;
  Status Notify(sap_callback changed, void* context) override;
  Status Withdraw(uint64_t step_id) override;
  Status Reset() override;
  Status Close(const CallSettings& call) override;
  int in_flight() const override { return session_.in_flight(); }
  bool draining() const override { return session_.draining(); }
  bool open() const override { return session_.open(); }

 private:
  client::Session session_;
};

}  // namespace sap::c
