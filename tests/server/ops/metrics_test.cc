#include "server/service/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <thread>

#include "server/ops/call_observer.h"
#include "server/ops/metrics_endpoint.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/scenes.h"

namespace sap {
namespace {

TEST(MetricsTest, CountsOfManyThreadsAddUp) {
  constexpr int kThreads = 12, kCounts = 20'000;
  Counter counter;
  constexpr double kBounds[] = {1, 2};
  Histogram histogram(kBounds);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < kCounts; ++k) {
        counter.Add();
        histogram.Add(i % 3 + 0.5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.Sum(), static_cast<uint64_t>(kThreads * kCounts));
  const Histogram::Counts counts = histogram.Read();
  EXPECT_EQ(counts.at_most[0], counts.all / 3);
  EXPECT_EQ(counts.at_most[1], counts.all / 3 * 2);
  EXPECT_EQ(counts.all, static_cast<uint64_t>(kThreads * kCounts));
  EXPECT_EQ(counts.sum, kThreads * kCounts * 1.5);
}

TEST(MetricsTest, AValueOnABoundIsAtMostIt) {
  constexpr double kBounds[] = {1, 2};
  Histogram histogram(kBounds);
  for (const double value : {1.0, 1.5, 2.0, 3.0}) histogram.Add(value);
  EXPECT_EQ(histogram.Read().at_most[0], 1u);
  EXPECT_EQ(histogram.Read().at_most[1], 3u);
  EXPECT_EQ(histogram.Read().all, 4u);
}

// The value of a sample, by its line up to the value.
std::string ValueOf(const std::string& text, const std::string& sample) {
  const size_t start = text.find("\n" + sample + " ");
  if (start == std::string::npos) return "absent";
  const size_t value = start + sample.size() + 2;
  return text.substr(value, text.find('\n', value) - value);
}

TEST(MetricsTest, SolvesAndRefusalsAreExportedByName) {
  Metrics metrics;
  ServerConfig config;
  config.threads = 2;
  config.admission.all.max_calls = 1;
  test::BlockingHandler handler(config, nullptr, &metrics);
  v1::SolveRequest request;
  *request.mutable_problem() = test::MixedProblem();
  v1::SolveResponse response;
  ASSERT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
  const auto& statuses = response.solution().islands().status();
  const auto converged = std::ranges::count(statuses, v1::ISLAND_STATUS_CONVERGED);
  ASSERT_GT(converged, 0);
  request.mutable_problem()->set_time_step(-1);
  ASSERT_FALSE(handler.Solve(request, CallContext(), &response).has_value());
  const auto account = handler.admission().AccountOf("somebody");
  ASSERT_TRUE(handler.admission().Admit(account.get(), {.bytes = 7}).has_value());
  ASSERT_FALSE(handler.Solve(request, CallContext(), &response).has_value());
  metrics.CallStarted(Method::kSolve);
  metrics.CallEnded(Method::kSolve, 8, 0.003);
  CallObserver(&metrics, nullptr).ReadsInProgress(/*waiting=*/5, /*slow=*/3);

  const std::string text =
      prometheus::TextSerializer().Serialize(CollectMetrics({&metrics, &handler}, "127.0.0.1:1"));
  const std::string labels =
      "grpc_type=\"unary\",grpc_service=\"sap.v1.SolverService\",grpc_method=\"Solve\"";
  EXPECT_EQ(ValueOf(text, "grpc_server_started_total{" + labels + "}"), "1") << text;
  EXPECT_EQ(
      ValueOf(text, "grpc_server_handled_total{" + labels + ",grpc_code=\"ResourceExhausted\"}"),
      "1");
  EXPECT_EQ(ValueOf(text, "grpc_server_handled_total{" + labels + ",grpc_code=\"OK\"}"), "0");
  EXPECT_EQ(ValueOf(text, "grpc_server_handling_seconds_count{" + labels + "}"), "1");
  EXPECT_EQ(ValueOf(text, "sap_problems_total{outcome=\"solved\"}"), "1");
  EXPECT_EQ(ValueOf(text, "sap_problems_total{outcome=\"failed\"}"), "1");
  EXPECT_EQ(ValueOf(text, "sap_refused_total{limit=\"SERVER_CALLS\"}"), "1");
  EXPECT_EQ(ValueOf(text, "sap_refused_total{limit=\"SLOW_REQUEST\"}"), "0");
  EXPECT_EQ(ValueOf(text, "sap_phase_seconds_count{phase=\"solve\"}"), "1");
  EXPECT_EQ(ValueOf(text, "sap_island_outcomes_total{status=\"converged\"}"),
            std::to_string(converged));
  EXPECT_EQ(ValueOf(text, "sap_islands_solved_total"), std::to_string(converged));
  EXPECT_EQ(ValueOf(text, "sap_islands_shared_total"), "0");
  EXPECT_EQ(ValueOf(text, "sap_reads_waiting"), "5");
  EXPECT_EQ(ValueOf(text, "sap_reads_slow"), "3");
  EXPECT_EQ(ValueOf(text, "sap_calls_held"), "1");
  EXPECT_EQ(ValueOf(text, "sap_bytes_held"), "7");
  EXPECT_EQ(ValueOf(text, "sap_sessions"), "0");
  EXPECT_EQ(ValueOf(text, "sap_session_bytes"), "0");
  EXPECT_EQ(ValueOf(text, "sap_connections"), "0");
  for (const char* const name :
       {"process_resident_memory_bytes", "process_open_fds", "process_max_fds",
        "process_start_time_seconds", "process_cpu_seconds_total", "sap_memory_limit_bytes"}) {
    EXPECT_GT(std::stod(ValueOf(text, name)), 0) << name;
  }
  handler.admission().Release(account.get(), {.bytes = 7});
}

TEST(MetricsTest, IslandsOfEveryStatusAreCountedUnderItsName) {
  Metrics metrics;
  ContactSolution solution;
  for (int i = 0; i <= static_cast<int>(SolveStatus::kCoulombLimit); ++i) {
    solution.islands.push_back({.status = static_cast<SolveStatus>(i)});
  }
  solution.shared_islands = 2;
  metrics.ProblemEnded({}, &solution);
  test::BlockingHandler handler(ServerConfig(), nullptr, &metrics);
  const std::string text =
      prometheus::TextSerializer().Serialize(CollectMetrics({&metrics, &handler}, "127.0.0.1:1"));
  for (const char* const name : {"converged", "stalled_at_roundoff", "iteration_limit", "deadline",
                                 "cancelled", "numerical_failure", "coulomb_limit"}) {
    EXPECT_EQ(ValueOf(text, std::string("sap_island_outcomes_total{status=\"") + name + "\"}"), "1")
        << name;
  }
  EXPECT_EQ(ValueOf(text, "sap_islands_solved_total"), "5");
  EXPECT_EQ(ValueOf(text, "sap_islands_shared_total"), "2");
}

}  // namespace
}  // namespace sap
