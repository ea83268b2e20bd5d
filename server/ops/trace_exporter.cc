#include "server/ops/trace_exporter.h"

#include <grpcpp/grpcpp.h>

#include <array>
#include <string>
#include <utility>

#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "server/server_identity.h"
#include "solver/engine/boot_id.h"

namespace sap {
namespace {

namespace otlp = opentelemetry::proto::collector::trace::v1;

using Clock = CallTrace::Clock;

constexpr int kSpansOfBatch = 512;
constexpr int kMaxSpans = 4096;  // kept until they are sent
constexpr std::chrono::seconds kPause{1};
constexpr std::chrono::milliseconds kTimeout{5000};
constexpr std::chrono::milliseconds kLastTimeout{1000};

template <size_t kBytes>
std::string TextOf(const std::array<uint8_t, kBytes>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), kBytes};
}

// The generator SplitMix64 of Steele, Lea and Flood: the numbers of a process are all different,
// and each process begins elsewhere.
uint64_t NextNumber() {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static std::atomic<uint64_t> state{std::stoull(std::string(BootId()), nullptr, 16)};
  uint64_t z = state.fetch_add(kStep, std::memory_order_relaxed);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string MakeSpanId() {
  std::array<uint8_t, 8> bytes;
  uint64_t number = NextNumber();
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(number);
    number >>= 8;
  }
  return TextOf(bytes);
}

// Time of the system where the clock of calls shows 0: one for all spans of a call, whose order
// is then that of their times.
std::chrono::nanoseconds SystemEpoch(Clock::time_point now) {
  return std::chrono::system_clock::now().time_since_epoch() - now.time_since_epoch();
}

void WriteTimes(std::chrono::nanoseconds epoch, Clock::time_point begin, Clock::time_point end,
                otlp::Span* span) {
  const auto unix_time = [epoch](Clock::time_point time) {
    return static_cast<uint64_t>((epoch + time.time_since_epoch()).count());
  };
  span->set_start_time_unix_nano(unix_time(begin));
  span->set_end_time_unix_nano(unix_time(end));
}

otlp::AnyValue* AddAttribute(const char* key, auto* owner) {
  otlp::KeyValue* attribute = owner->add_attributes();
  attribute->set_key(key);
  return attribute->mutable_value();
}

void AddText(const char* key, std::string_view text, auto* owner) {
  if (!text.empty()) AddAttribute(key, owner)->set_string_value(std::string(text));
}

void AddNumber(const char* key, uint64_t number, auto* owner) {
  AddAttribute(key, owner)->set_int_value(static_cast<int64_t>(number));
}

// As OpenTelemetry's conventions say of servers: what its client did wrong is no error of a server.
bool IsErrorOfServer(int code) {
  switch (static_cast<grpc::StatusCode>(code)) {
    case grpc::UNKNOWN:
    case grpc::DEADLINE_EXCEEDED:
    case grpc::UNIMPLEMENTED:
    case grpc::INTERNAL:
    case grpc::UNAVAILABLE:
    case grpc::DATA_LOSS:
      return true;
    default:
      return false;
  }
}

void WriteCall(const TracedCall& call, const std::string& id, otlp::Span* span) {
  const char* const method = Name(call.method);
  const char* const service = ServiceOf(call.method);
  span->set_trace_id(TextOf(call.trace->parent().trace_id));
  span->set_span_id(id);
  span->set_parent_span_id(TextOf(call.trace->parent().span_id));
  span->set_name(std::string(service) + "/" + method + (call.step_id ? " step" : ""));
  span->set_kind(otlp::Span::SPAN_KIND_SERVER);
  AddText("rpc.system", "grpc", span);
  AddText("rpc.service", service, span);
  AddText("rpc.method", method, span);
  AddNumber("rpc.grpc.status_code", static_cast<uint64_t>(call.code), span);
  AddText("sap.client", call.client, span);
  AddText("sap.request_id", call.request_id, span);
  AddNumber("sap.request_bytes", call.request_bytes, span);
  if (call.step_id) AddNumber("sap.step_id", *call.step_id, span);
  if (!IsErrorOfServer(call.code)) return;
  span->mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
  span->mutable_status()->set_message(std::string(call.message));
}

void WritePhase(const TraceParent& trace, const CallTrace::PhaseSpan& phase,
                const std::string& call_id, otlp::Span* span) {
  span->set_trace_id(TextOf(trace.trace_id));
  span->set_span_id(MakeSpanId());
  span->set_parent_span_id(call_id);
  span->set_name(Name(phase.phase));
  span->set_kind(otlp::Span::SPAN_KIND_INTERNAL);
}

int CountOf(const otlp::ExportTraceServiceRequest& batch) {
  return batch.resource_spans(0).scope_spans(0).spans_size();
}

}  // namespace

struct TraceExporter::Stub {
  std::unique_ptr<otlp::TraceService::Stub> service;
};

TraceExporter::TraceExporter(const std::string& collector, Warn warn)
    : stub_(std::make_unique<Stub>(Stub{otlp::TraceService::NewStub(
          grpc::CreateChannel(collector, grpc::InsecureChannelCredentials()))})),
      warn_(std::move(warn)),
      batch_(EmptyBatch()),
      thread_([this] { Run(); }) {}

TraceExporter::~TraceExporter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::unique_ptr<TraceExporter::Batch> TraceExporter::EmptyBatch() const {
  auto batch = std::make_unique<Batch>();
  otlp::ResourceSpans* spans = batch->add_resource_spans();
  AddText("service.name", "sap-server", spans->mutable_resource());
  AddText("service.version", ServerVersion(), spans->mutable_resource());
  AddText("service.instance.id", BootId(), spans->mutable_resource());
  spans->add_scope_spans();
  return batch;
}

void TraceExporter::Add(const TracedCall& call) {
  const Clock::time_point end = Clock::now();
  const std::chrono::duration<double> took(call.duration_s);
  const auto begin = end - std::chrono::duration_cast<Clock::duration>(took);
  const std::chrono::nanoseconds epoch = SystemEpoch(end);
  const std::string id = MakeSpanId();
  const auto phases = call.trace->spans();
  const std::lock_guard lock(mutex_);
  otlp::ScopeSpans* scope = batch_->mutable_resource_spans(0)->mutable_scope_spans(0);
  if (scope->spans_size() + std::ssize(phases) >= kMaxSpans) {
    dropped_.fetch_add(phases.size() + 1, std::memory_order_relaxed);
    return;
  }
  otlp::Span* span = scope->add_spans();
  WriteCall(call, id, span);
  WriteTimes(epoch, begin, end, span);
  for (const CallTrace::PhaseSpan& phase : phases) {
    span = scope->add_spans();
    WritePhase(call.trace->parent(), phase, id, span);
    WriteTimes(epoch, phase.begin, phase.end, span);
  }
  if (scope->spans_size() >= kSpansOfBatch) changed_.notify_all();
}

void TraceExporter::Run() {
  std::unique_lock lock(mutex_);
  for (bool is_last = false; !is_last;) {
    changed_.wait_for(lock, kPause,
                      [this] { return is_ending_ || CountOf(*batch_) >= kSpansOfBatch; });
    is_last = is_ending_;
    if (CountOf(*batch_) == 0) continue;
    const std::unique_ptr<Batch> batch = std::exchange(batch_, EmptyBatch());
    lock.unlock();
    Send(*batch, is_last ? kLastTimeout : kTimeout);
    lock.lock();
  }
}

// A batch that is not taken is lost: to repeat it would only fill the next one.
void TraceExporter::Send(const Batch& batch, std::chrono::milliseconds timeout) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  otlp::ExportTraceServiceResponse response;
  const grpc::Status status = stub_->service->Export(&context, batch, &response);
  const auto count = static_cast<uint64_t>(CountOf(batch));
  (status.ok() ? sent_ : dropped_).fetch_add(count, std::memory_order_relaxed);
  if (status.ok() == !is_losing_) return;
  is_losing_ = !status.ok();
  warn_(is_losing_ ? "traces are lost: the collector of --otlp-collector answers: " +
                         status.error_message()
                   : "traces are sent again");
}

}  // namespace sap
