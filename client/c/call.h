// How a call of the C interface is made, and how it ends: its settings, its error, and whether it
// has ended.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/c/sap_islands.h"
#include "client/cpp/backend/call_types.h"
#include "client/cpp/session.h"
#include "solver/engine/engine_error.h"

struct sap_stop {
  std::atomic<bool> requested{false};
};

namespace sap::c {

using Clock = std::chrono::steady_clock;
using Wait = std::optional<std::chrono::nanoseconds>;  // empty: without end

using client::Error;
using client::Status;

// `kind` as in sap_error.
inline tl::unexpected<Error> Fail(int32_t kind, std::string message, std::string field = "") {
  return tl::unexpected(Error{client::FromCode(kind), std::move(message), std::move(field)});
}

inline tl::unexpected<Error> Fail(const ProblemError& error) {
  return client::FromEngine(RefuseField(error).value());
}

// A sap_call.
struct CallSettings {
  client::CallOptions options;  // its stop flag and its names
  Clock::time_point until{Clock::time_point::max()};
  int servers{1};                  // of sap_solve
  client::SessionOptions session;  // `background` is that of every call, the others of sessions
  sap_callback done{nullptr};
  void* context{nullptr};
  int32_t* kind{nullptr};  // of a call in the background

  bool has_deadline() const { return until != Clock::time_point::max(); }
  // Time until the deadline. A call that begins after it has hardly any.
  client::Timeout left() const {
    if (!has_deadline()) return std::nullopt;
    return std::max<std::chrono::nanoseconds>(until - Clock::now(), std::chrono::nanoseconds(1));
  }
};

}  // namespace sap::c
