// Spans of traced calls to a collector of OpenTelemetry, by OTLP over gRPC.
//
// A call is traced where its client samples it (header traceparent). Its span belongs to the
// client's, and those of its phases to it. A thread sends them each second or by 512; where they
// come faster than they are taken, the latest are dropped and counted, and no call waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "server/service/call_trace.h"

namespace opentelemetry::proto::collector::trace::v1 {
class ExportTraceServiceRequest;
}

namespace sap {

// A call, or a step of a session, that has ended now.
struct TracedCall {
  const CallTrace* trace;
  Method method;
  int code{0};
  std::string_view message{};
  double duration_s{0};
  std::string_view client{};
  std::string_view request_id{};
  uint64_t request_bytes{0};
  std::optional<uint64_t> step_id{};
};

// Thread-safe.
class TraceExporter {
 public:
  // Receives a line where spans begin to be lost, and where they are taken again.
  using Warn = std::function<void(const std::string& line)>;

  // The collector: HOST:PORT or unix:PATH, without TLS. It need not be there yet.
  TraceExporter(const std::string& collector, Warn warn);
  // Sends what is left, for at most a second.
  ~TraceExporter();

  void Add(const TracedCall& call);

  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  using Batch = opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
  struct Stub;

  std::unique_ptr<Batch> EmptyBatch() const;
  void Run();
  void Send(const Batch& batch, std::chrono::milliseconds timeout);

  const std::unique_ptr<Stub> stub_;
  const Warn warn_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> dropped_{0};
  bool is_losing_{false};  // of the thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Batch> batch_;  // spans that are not sent yet
  bool is_ending_{false};
  std::thread thread_;
};

}  // namespace sap
