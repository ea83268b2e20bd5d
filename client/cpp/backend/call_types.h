// Types that the calls of a client share. Internal.
#pragma once

#include <chrono>
#include <optional>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "solver/engine/engine_error.h"

namespace sap::client {

using Status = tl::expected<void, Error>;

// Time until a deadline; absent: there is none.
using Timeout = std::optional<std::chrono::nanoseconds>;

// A longer time counts as this one, or as no limit: adding it to a clock could overflow.
inline constexpr std::chrono::hours kLongestTime{24 * 366};

// The outcome of what CallOptions::cancelled has ended.
inline Error CallCancelled() { return {ErrorCode::kCancelled, "the call was cancelled"}; }

// The errors of the engine as those of a client.
inline tl::unexpected<Error> FromEngine(const EngineError& error) {
  return tl::unexpected(
      Error{FromCode(static_cast<int>(error.code)), error.message, error.field, error.reason});
}

}  // namespace sap::client
