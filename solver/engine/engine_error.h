// Why there is no answer to a problem.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <tl/expected.hpp>

#include "solver/problem/problem_error.h"

namespace sap {

// Numbers of google.rpc.Code.
enum class EngineErrorCode : uint8_t {
  kCancelled = 1,           // by the caller
  kInvalidArgument = 3,     // a rule of the schema is violated
  kDeadlineExceeded = 4,    // the deadline passed before a result was available
  kResourceExhausted = 8,   // memory
  kFailedPrecondition = 9,  // a session that another thread was stepping at fork()
  kInternal = 13,           // a defect
};

struct EngineError {
  EngineErrorCode code{EngineErrorCode::kInternal};
  std::string message;   // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string field;     // "contacts.friction[17]"; empty if no field is at fault
  std::string reason{};  // limit that is exceeded, for programs: "SOLVE_MEMORY"; or empty
};

using EngineStatus = tl::expected<void, EngineError>;

// An error about one field. The message is the field name followed by the reason.
inline tl::unexpected<EngineError> RefuseField(const std::string& field,
                                               const std::string& reason) {
  return tl::unexpected(
      EngineError{EngineErrorCode::kInvalidArgument, field + " " + reason, field});
}

// An error about what the solver finds at fault in the group of that name, as in "tangents[1].".
inline tl::unexpected<EngineError> RefuseField(const ProblemError& error,
                                               const std::string& within = "") {
  std::string field = within + error.field;
  if (error.index >= 0) field.append("[").append(std::to_string(error.index)).append("]");
  return RefuseField(field, error.reason);
}

// Runs a step and converts exceptions to errors. Only the standard library throws, when memory runs
// out; that must not end other calls.
template <typename Step>
auto CatchExceptions(const Step& step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(
        EngineError{EngineErrorCode::kResourceExhausted, "not enough memory for this problem", ""});
  } catch (const std::exception& error) {
    return tl::unexpected(EngineError{EngineErrorCode::kInternal, error.what(), ""});
  }
}

}  // namespace sap
