// A session of the C interface: its backend, and that one call at a time uses it.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "client/c/backend.h"

struct sap_session {
  sap_session(std::shared_ptr<sap::c::Backend> of, std::unique_ptr<sap::c::SessionBackend> steps)
      : client(std::move(of)), backend(std::move(steps)) {}

  const std::shared_ptr<sap::c::Backend> client;
  std::unique_ptr<sap::c::SessionBackend> backend;

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
