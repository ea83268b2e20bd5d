// How a call of the C interface is made, and how it ends: its settings, its error, and whether it
// has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "client/c/sap_islands.h"
#include "solver/engine/engine_error.h"
#include "solver/engine/time_limit.h"

struct sap_stop {
  std::atomic<bool> requested{false};
};

namespace sap::c {

using Wait = std::optional<std::chrono::nanoseconds>;  // empty: without end

// As sap_error.
struct CallError {
  int32_t kind{SAP_INTERNAL};
  std::string message{};
  std::string field{};
  std::string reason{};
  std::string request_id{};
  std::string server{};
  double retry_after_s{0};
  int32_t lost_attempts{0};
};

using Status = tl::expected<void, CallError>;

inline tl::unexpected<CallError> Fail(int32_t kind, std::string message, std::string field = "") {
  return tl::unexpected(CallError{kind, std::move(message), std::move(field)});
}

inline tl::unexpected<CallError> Fail(EngineError error) {
  return tl::unexpected(CallError{static_cast<int32_t>(error.code), std::move(error.message),
                                  std::move(error.field), std::move(error.reason)});
}

inline tl::unexpected<CallError> Fail(const ProblemError& error) {
  return Fail(RefuseField(error).value());
}

inline Status StatusOf(EngineStatus status) {
  if (status) return {};
  return Fail(std::move(status.error()));
}

// A sap_call. The texts are those of the caller.
struct CallSettings {
  CallLimits limits;  // from the beginning of the call
  Wait deadline;      // as it was given
  int servers{1};     // of sap_solve
  bool background{false};
  sap_callback done{nullptr};
  void* context{nullptr};
  const char* request_id{""};
  const char* traceparent{""};
  int32_t* kind{nullptr};  // of a call in the background
  // For sessions only.
  Wait reconnect_within;
  std::optional<bool> low_latency;
  bool opens_later{false};
};

}  // namespace sap::c
