// A session of the C interface: the session of client/cpp, and that one call at a time uses it.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "client/c/connection.h"
#include "client/cpp/session.h"

// Each call fills the answer unless it returns an error.
struct sap_session {
  sap_session(std::shared_ptr<sap::c::Connection> of, sap::client::Session opened)
      : client(std::move(of)), steps(std::move(opened)) {}

  sap::c::Status Step(const sap_problem* problem, const sap_options* options,
                      const sap::c::CallSettings& call, sap::c::AnswerContent* answer);
  // Sets the number of the step alone.
  sap::c::Status Send(const sap_problem* problem, const sap_options* options,
                      const sap::c::CallSettings& call, sap::c::AnswerContent* answer);
  sap::c::Status Take(const sap::c::CallSettings& call, sap::c::AnswerContent* answer);

  const std::shared_ptr<sap::c::Connection> client;
  sap::client::Session steps;

  // Runs a call unless another thread is in one.
  template <typename Call>
  sap::c::Status Run(const Call& call) {
    // True also in the child of a fork() during a call, for ever.
    if (busy_.exchange(true)) {
      return sap::c::Fail(SAP_FAILED_PRECONDITION,
                          "the session is in a step of another thread, here or in the parent of "
                          "this process");
    }
    const Idle idle{&busy_};
    return call();
  }

 private:
  struct Idle {
    std::atomic<bool>* busy;
    ~Idle() { *busy = false; }
  };

  std::atomic<bool> busy_{false};
};
