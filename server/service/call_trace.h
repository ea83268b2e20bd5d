// Times of the phases of a traced call or step.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "server/scheduling/call_context.h"
#include "server/service/metrics.h"

namespace sap {

// Trace and span of the client that a call belongs to, as in the header traceparent.
struct TraceParent {
  std::array<uint8_t, 16> trace_id{};
  std::array<uint8_t, 8> span_id{};
};

// Thread-safe: the problems of a batch are solved concurrently.
class CallTrace {
 public:
  using Clock = CallContext::Clock;
  struct PhaseSpan {
    Phase phase;
    Clock::time_point begin;
    Clock::time_point end;
  };

  explicit CallTrace(const TraceParent& parent) : parent_(parent) {}

  const TraceParent& parent() const { return parent_; }

  // A phase that took this time until `end`. Beyond kMaxSpans of a batch it is left out.
  void Add(Phase phase, Clock::time_point end, double duration_s) {
    const std::lock_guard lock(mutex_);
    if (spans_.size() == kMaxSpans) return;
    const std::chrono::duration<double> took(duration_s);
    spans_.push_back({phase, end - std::chrono::duration_cast<Clock::duration>(took), end});
  }

  std::vector<PhaseSpan> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

 private:
  static constexpr size_t kMaxSpans = 256;

  const TraceParent parent_;
  mutable std::mutex mutex_;
  std::vector<PhaseSpan> spans_;
};

}  // namespace sap
