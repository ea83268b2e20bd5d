#include "server/server_config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <thread>

namespace sap {
namespace {

constexpr int kMostThreads = 256;  // as solver/parallel.cc allows the process
// Trees times dofs of each is an int in the solver.
constexpr int kMostTrees = 1 << 20;
constexpr int kMostTreeDofs = 2000;
// A protobuf message cannot be larger than this, whatever the transport allows.
constexpr int64_t kLargestMessage_bytes = std::numeric_limits<int32_t>::max();

int NumProcessors() { return std::max(1u, std::thread::hardware_concurrency()); }

// HOST:PORT with a numeric port, or unix:PATH; empty if it is one.
std::string CheckAddress(const std::string& address) {
  std::string expected = "'" + address + "' is no address; give HOST:PORT or unix:PATH";
  if (address.starts_with("unix:")) return address.size() > 5 ? "" : expected;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return expected;
  const std::string port = address.substr(colon + 1);
  const bool numeric = !port.empty() && port.size() <= 5 &&
                       port.find_first_not_of("0123456789") == std::string::npos;
  return numeric && std::stoi(port) <= 65535 ? "" : expected;
}

void AddRecordingFlags(CLI::App* app, RecordingConfig* recording) {
  using Rule = RecordingConfig::Rule;
  const std::map<std::string, Rule> rules{
      {"all", Rule::kAll}, {"failed", Rule::kFailed}, {"slower", Rule::kSlower}};
  CLI::Option* directory =
      app->add_option("--record", recording->directory,
                      "Directory to record problems and answers to; see sap-client replay");
  app->add_option("--record-rule", recording->rule, "What to record: all, failed or slower")
      ->transform(CLI::CheckedTransformer(rules))
      ->needs(directory);
  app->add_option("--record-slower-than", recording->slower_than_s,
                  "Seconds above which the rule 'slower' records")
      ->check(CLI::Range(0.0, 86'400.0))
      ->needs(directory);
  app->add_option("--record-max-bytes", recording->max_bytes, "Size at which the recording ends")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()))
      ->needs(directory);
}

void AddFlags(CLI::App* app, ServerConfig* config) {
  app->add_option("--listen", config->listen,
                  "Address to serve: HOST:PORT (port 0: any free one) or unix:PATH")
      ->check(CLI::Validator(CheckAddress, "ADDR"));
  app->add_option("--threads", config->threads, "Threads that solve large problems")
      ->check(CLI::Range(1, kMostThreads));
  app->add_option("--io-threads", config->io_threads,
                  "Threads that receive calls and solve small problems")
      ->check(CLI::Range(1, kMostThreads));
  app->add_option("--max-message-bytes", config->max_message_bytes, "Largest request")
      ->check(CLI::Range(int64_t{1}, kLargestMessage_bytes));
  app->add_option("--max-trees", config->problem.max_trees, "Most trees and bodies in a problem")
      ->check(CLI::Range(1, kMostTrees));
  app->add_option("--max-tree-dofs", config->problem.max_tree_dofs,
                  "Most degrees of freedom of one tree")
      ->check(CLI::Range(1, kMostTreeDofs));
  app->add_option("--max-contacts", config->problem.max_contacts, "Most contacts in a problem")
      ->check(CLI::Range(1, 1 << 26));
  app->add_option("--max-iterations", config->max_iterations,
                  "Largest iteration limit a client may ask for")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-concurrent-calls", config->max_concurrent_calls,
                  "Most calls served at once; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-batch-problems", config->max_batch_problems, "Most problems in a batch")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-sessions", config->max_sessions,
                  "Most sessions open at once; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-steps-in-flight", config->max_steps_in_flight,
                  "Most steps of a session taken in and not yet answered")
      ->check(CLI::Range(1, 1024));
  app->add_option("--inline-below-us", config->inline_below_us,
                  "Solve problems predicted to take less on the thread that received them")
      ->check(CLI::Range(0.0, 1e6));
  app->add_option("--drain-timeout-s", config->drain_timeout_s,
                  "Time for running calls to finish after SIGTERM or SIGINT")
      ->check(CLI::Range(0.0, 86'400.0));
  AddRecordingFlags(app, &config->recording);
  app->set_version_flag("--version", SAP_VERSION);
}

}  // namespace

int ServerConfig::DefaultThreads() { return NumProcessors(); }

// More would only compete with the threads that solve.
int ServerConfig::DefaultIoThreads() { return std::min(NumProcessors(), 8); }

std::optional<int> ReadServerFlags(int argc, const char* const* argv, ServerConfig* config) {
  CLI::App app("Solves frictional contact problems sent over gRPC.", "sap-server");
  app.option_defaults()->always_capture_default();
  AddFlags(&app, config);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace sap
