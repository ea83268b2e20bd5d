#include "server/ops/metrics_endpoint.h"

#include <prometheus/text_serializer.h>

#include <chrono>
#include <limits>
#include <utility>

#include "server/listen_address.h"
#include "server/ops/process_status.h"
#include "server/server_identity.h"
#include "solver/build_info.h"

namespace sap {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<ClientMetric::Label>;

// Appends metric families, then samples to the family begun last.
class Families {
 public:
  explicit Families(std::vector<MetricFamily>* families) : families_(families) {}

  Families& Begin(const char* name, const char* help, MetricType type) {
    families_->push_back({name, help, type, {}});
    return *this;
  }

  Families& Add(Labels labels, double value) {
    ClientMetric& metric = families_->back().metric.emplace_back();
    metric.label = std::move(labels);
    if (families_->back().type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    return *this;
  }

  Families& Add(Labels labels, const Histogram& histogram) {
    ClientMetric& metric = families_->back().metric.emplace_back();
    metric.label = std::move(labels);
    const Histogram::Counts counts = histogram.Read();
    metric.histogram.sample_count = counts.all;
    metric.histogram.sample_sum = counts.sum;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      metric.histogram.bucket.push_back({counts.at_most[i], histogram.bounds()[i]});
    }
    metric.histogram.bucket.push_back({counts.all, std::numeric_limits<double>::infinity()});
    return *this;
  }

 private:
  std::vector<MetricFamily>* const families_;
};

Labels LabelsOf(Method method) {
  const bool streams = method == Method::kStreamBatch || method == Method::kSolveSession;
  const bool both = method == Method::kSolveSession;
  return {{"grpc_type", both ? "bidi_stream" : (streams ? "server_stream" : "unary")},
          {"grpc_service", ServiceOf(method)},
          {"grpc_method", Name(method)}};
}

void AddCalls(const Metrics& metrics, int methods, Families* families) {
  families->Begin("grpc_server_started_total", "Calls started.", MetricType::Counter);
  for (int i = 0; i < methods; ++i) {
    families->Add(LabelsOf(static_cast<Method>(i)), static_cast<double>(metrics.started[i].Sum()));
  }
  families->Begin("grpc_server_handled_total", "Calls ended, by status code.", MetricType::Counter);
  for (int i = 0; i < methods; ++i) {
    for (int code = 0; code < kNumCodes; ++code) {
      Labels labels = LabelsOf(static_cast<Method>(i));
      labels.push_back({"grpc_code", NameOfCode(code)});
      families->Add(std::move(labels), static_cast<double>(metrics.handled[i][code].Sum()));
    }
  }
  families->Begin("grpc_server_handling_seconds", "Duration of calls.", MetricType::Histogram);
  for (int i = 0; i < methods; ++i) {
    families->Add(LabelsOf(static_cast<Method>(i)), metrics.durations[i]);
  }
  families->Begin("sap_refused_total", "Calls and steps rejected, by the limit that was exceeded.",
                  MetricType::Counter);
  for (const auto& [limit, count] : metrics.refusals()) {
    families->Add({{"limit", limit}}, static_cast<double>(count));
  }
  families
      ->Begin("sap_refusal_seconds", "Time from the arrival of a call to its rejection by a limit.",
              MetricType::Histogram)
      .Add({}, metrics.refusal_times);
}

void AddProblems(const Metrics& metrics, Families* families) {
  families->Begin("sap_problems_total", "Problems answered.", MetricType::Counter)
      .Add({{"outcome", "solved"}}, static_cast<double>(metrics.problems_solved.Sum()))
      .Add({{"outcome", "failed"}}, static_cast<double>(metrics.problems_failed.Sum()));
  families->Begin("sap_phase_seconds", "Time of a problem in each phase.", MetricType::Histogram);
  for (int i = 0; i < kNumPhases; ++i) {
    families->Add({{"phase", Name(static_cast<Phase>(i))}}, metrics.phases[i]);
  }
  families->Begin("sap_islands", "Islands per problem.", MetricType::Histogram)
      .Add({}, metrics.islands);
  families->Begin("sap_islands_solved_total", "Islands solved.", MetricType::Counter)
      .Add({}, static_cast<double>(metrics.islands_solved.Sum()));
  families
      ->Begin("sap_islands_shared_total",
              "Islands copied from an equal one of another problem of the batch.",
              MetricType::Counter)
      .Add({}, static_cast<double>(metrics.islands_shared.Sum()));
  families
      ->Begin("sap_iterations", "Newton iterations per problem, maximum over its islands.",
              MetricType::Histogram)
      .Add({}, metrics.iterations);
  families->Begin("sap_island_outcomes_total", "Islands, by status of their solve.",
                  MetricType::Counter);
  for (int i = 0; i < kNumSolveStatuses; ++i) {
    families->Add({{"status", NameForMetrics(static_cast<SolveStatus>(i))}},
                  static_cast<double>(metrics.island_outcomes[i].Sum()));
  }
}

void AddServer(const Metrics& metrics, RequestHandler* handler, Families* families) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    families->Begin(name, help, MetricType::Gauge).Add({}, value);
  };
  const auto counter = [&](const char* name, const char* help, const Counter& count) {
    families->Begin(name, help, MetricType::Counter).Add({}, static_cast<double>(count.Sum()));
  };
  gauge("sap_sessions", "Open sessions.", handler->num_sessions());
  counter("sap_session_steps_total", "Session steps answered.", metrics.session_steps);
  counter("sap_sessions_expired_total", "Sessions ended by the idle timeout.",
          metrics.sessions_expired);
  gauge("sap_health_watches", "Open Watch streams of the health service.", metrics.watches);
  counter("sap_health_watches_refused_total",
          "Watch streams refused or evicted by a limit per connection or in all.",
          metrics.watches_refused);
  gauge("sap_session_bytes", "Bytes that open sessions keep between their steps.",
        static_cast<double>(handler->admission().kept_bytes()));
  gauge("sap_idle_bytes", "Bytes that are kept for later calls.",
        static_cast<double>(handler->idle_bytes()));
  gauge("sap_short_of_memory", "1 while new calls are refused for want of memory.",
        handler->admission().short_of_memory() ? 1 : 0);
  gauge("sap_reads_waiting", "Requests that wait for others of their client or for a slot.",
        metrics.reads_waiting);
  gauge("sap_reads_slow", "Requests that are being received for longer than a second.",
        metrics.reads_slow);
  gauge("sap_calls_held", "Calls received, queued or being solved.", handler->admission().calls());
  gauge("sap_bytes_held", "Bytes that the held calls take: requests, solves, derivatives, answers.",
        static_cast<double>(handler->admission().bytes()));
  gauge("sap_tasks_queued", "Problems in the queue.", handler->queue().queued());
  gauge("sap_arena_busy_fraction", "Fraction of the solver threads that are busy.",
        static_cast<double>(handler->queue().running()) / handler->config().threads);
  families->Begin("sap_build_info", "Constant 1, labelled with the build.", MetricType::Gauge)
      .Add({{"version", ServerVersion()}, {"instruction_set", InstructionSet()}}, 1);
}

void AddWorlds(const Metrics& metrics, const WorldHandler& worlds, Families* families) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    families->Begin(name, help, MetricType::Gauge).Add({}, value);
  };
  const auto counter = [&](const char* name, const char* help, double value) {
    families->Begin(name, help, MetricType::Counter).Add({}, value);
  };
  gauge("sap_models", "Models that are kept.", worlds.models().models());
  gauge("sap_model_bytes", "Bytes of these.", static_cast<double>(worlds.models().bytes()));
  const WorkerPool& workers = worlds.workers();
  families->Begin("sap_world_workers", "Processes that step worlds.", MetricType::Gauge)
      .Add({{"state", "busy"}}, workers.in_use())
      .Add({{"state", "idle"}}, workers.idle());
  gauge("sap_world_worker_bytes", "Resident memory of these.",
        static_cast<double>(workers.resident_bytes()));
  families->Begin("sap_world_workers_ended_total", "Processes that stepped worlds and have ended.",
                  MetricType::Counter);
  for (int i = 0; i < kNumWorkerEnds; ++i) {
    const auto why = static_cast<WorkerEnd>(i);
    families->Add({{"reason", Name(why)}}, static_cast<double>(workers.ended(why)));
  }
  counter("sap_world_steps_total", "Steps of worlds.",
          static_cast<double>(metrics.world_steps.Sum()));
  counter("sap_world_slices_total", "Slices of calls in which they were taken.",
          static_cast<double>(metrics.world_slices.Sum()));
  counter("sap_world_seconds_total", "Time of these slices.",
          static_cast<double>(metrics.world_time_us.Sum()) * 1e-6);
}

// Metrics of the files of the server, its log included.
void AddFiles(const MetricSources& sources, Families* families) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    families->Begin(name, help, MetricType::Gauge).Add({}, value);
  };
  if (sources.log != nullptr) {
    families
        ->Begin("sap_log_lines_dropped_total",
                "Log lines lost because they were written too slowly.", MetricType::Counter)
        .Add({}, static_cast<double>(sources.log->lines_dropped()));
  }
  if (sources.traces != nullptr) {
    families
        ->Begin("sap_trace_spans_total", "Spans by whether the collector took them.",
                MetricType::Counter)
        .Add({{"taken", "yes"}}, static_cast<double>(sources.traces->sent()))
        .Add({{"taken", "no"}}, static_cast<double>(sources.traces->dropped()));
  }
  if (sources.tokens != nullptr) {
    gauge("sap_token_reload_failed", "Whether the token file is invalid and older tokens are used.",
          sources.tokens->reload_failed() ? 1 : 0);
  }
  if (sources.certificates == nullptr) return;
  gauge("sap_certificate_reload_failed",
        "Whether certificate, key or client CA are invalid and older ones are used.",
        sources.certificates->reload_failed() ? 1 : 0);
  gauge("sap_certificate_expiry_timestamp_seconds", "Expiry time of the TLS certificate in use.",
        std::chrono::duration<double>(sources.certificates->expiry().time_since_epoch()).count());
}

void AddMemory(int64_t limit, Families* families) {
  const auto gauge = [&](const char* name, const char* help, int64_t bytes) {
    families->Begin(name, help, MetricType::Gauge).Add({}, static_cast<double>(bytes));
  };
  const ProcessMemory memory = ReadProcessMemory(limit);
  gauge("process_resident_memory_bytes", "Resident memory.", memory.resident_bytes);
  gauge("sap_memory_limit_bytes",
        "Memory of the control group or the machine, or --memory-limit-bytes.", memory.limit_bytes);
}

// With the names that Prometheus's own clients use.
void AddProcess(const std::string& served, Families* families) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    families->Begin(name, help, MetricType::Gauge).Add({}, value);
  };
  const ProcessStatus process = ReadProcessStatus();
  gauge("process_open_fds", "Open file descriptors.", process.open_descriptors);
  gauge("process_max_fds", "Most file descriptors.", static_cast<double>(process.max_descriptors));
  gauge("process_start_time_seconds", "Start, since the epoch.", process.start_time_s);
  families->Begin("process_cpu_seconds_total", "User and system time.", MetricType::Counter)
      .Add({}, process.processor_s);
  gauge("sap_connections", "Established connections of clients and proxies.",
        CountConnections(served));
}

// Whoever reaches the port may ask for the page in a loop.
constexpr std::chrono::seconds kPageAge{1};
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

std::vector<MetricFamily> CollectMetrics(const MetricSources& sources, const std::string& served) {
  std::vector<MetricFamily> all;
  Families families(&all);
  AddCalls(*sources.metrics, sources.worlds != nullptr ? kNumMethods : kNumSolverMethods,
           &families);
  AddProblems(*sources.metrics, &families);
  AddServer(*sources.metrics, sources.handler, &families);
  if (sources.worlds != nullptr) AddWorlds(*sources.metrics, *sources.worlds, &families);
  AddFiles(sources, &families);
  AddMemory(sources.handler->config().memory_limit_bytes, &families);
  AddProcess(served, &families);
  return all;
}

tl::expected<std::unique_ptr<MetricsEndpoint>, std::string> MetricsEndpoint::Start(
    const std::string& address, const MetricSources& sources) {
  std::unique_ptr<MetricsEndpoint> self(new MetricsEndpoint());
  const auto answer = [sources, endpoint = self.get()](std::string_view path) {
    return endpoint->Answer(sources, path);
  };
  auto server = HttpServer::Start(address, answer, HttpServer::Limits());
  if (!server) return tl::unexpected("metrics: " + server.error());
  self->server_ = std::move(*server);
  self->address_ = WithPort(address, self->server_->port());
  return self;
}

HttpServer::Response MetricsEndpoint::Answer(const MetricSources& sources, std::string_view path) {
  if (path == "/metrics") return {200, Page(sources), kMetricsType};
  if (path == "/live") {
    if (live_.load(std::memory_order_relaxed)) return {200, "live\n"};
    return {503, "accepts no connections\n"};
  }
  if (path != "/ready") return {404, "the paths are /metrics, /live and /ready\n"};
  if (ready_.load(std::memory_order_relaxed)) return {200, "ready\n"};
  return {503, "not ready\n"};
}

const std::string& MetricsEndpoint::Page(const MetricSources& sources) {
  const auto now = std::chrono::steady_clock::now();
  if (now < page_expiry_) return page_;
  const auto served = served_.load();
  page_ = prometheus::TextSerializer().Serialize(
      CollectMetrics(sources, served != nullptr ? *served : ""));
  page_expiry_ = now + kPageAge;
  return page_;
}

}  // namespace sap
