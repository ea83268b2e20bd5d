// The header traceparent of W3C trace context: 00-TRACE-SPAN-FLAGS in hexadecimal digits.
#pragma once

#include <optional>
#include <string_view>

#include "server/service/call_trace.h"

namespace sap {

// Trace and span of a header; nothing where it is not well formed, or its client does not sample
// the trace. Later versions of the header begin as version 00 does, and are read as such.
// https://www.w3.org/TR/trace-context/
std::optional<TraceParent> SampledParent(std::string_view text);

}  // namespace sap
