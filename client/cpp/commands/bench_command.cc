#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "client/cpp/bench/echo_server.h"
#include "client/cpp/bench/load.h"
#include "client/cpp/bench/recorded_load.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/interrupt.h"
#include "client/cpp/commands/solve_flags.h"
#include "client/cpp/problem_file.h"

namespace sap::client {
namespace {

struct BenchFlags : SolveFlags {
  std::vector<std::string> files;
  std::vector<std::string> recordings;
  double speed{1};
  LoadMode mode{LoadMode::kSession};
  Load load;
  std::string echo;  // address; empty: no comparison
  int pairs{30};
  std::string csv;
};

constexpr double kShares[] = {0.5, 0.9, 0.99, 0.999, 1};

const char* ModeName(LoadMode mode) {
  constexpr const char* kNames[] = {"unary", "session", "batch"};
  return kNames[static_cast<int>(mode)];
}

Connector ConnectorTo(const std::string& address, const BenchFlags& flags) {
  return [address, connect = flags.connect] { return Client::Connect(address, connect); };
}

void PrintHead() {
  std::printf("%-10s %10s %10s %10s %10s %10s %10s %10s\n", "", "calls", "per s", "p50/us",
              "p90/us", "p99/us", "p99.9/us", "max/us");
}

void PrintLine(const char* name, const Latencies& latencies, double elapsed_s) {
  std::printf("%-10s %10zu %10.1f", name, latencies.count(),
              static_cast<double>(latencies.count()) / elapsed_s);
  for (const double share : kShares) std::printf(" %10.1f", latencies.Percentile(share) * 1e6);
  std::printf("\n");
}

int WriteCsv(const BenchFlags& flags, const LoadResult& result) {
  if (flags.csv.empty()) return 0;
  const bool is_new = !std::filesystem::exists(flags.csv);
  std::ofstream file(flags.csv, std::ios::app);
  if (is_new) {
    file << "mode,workers,rate_per_s,elapsed_s,answered,refused,failed,p50_s,p90_s,p99_s,p999_s,"
            "max_s,refused_p50_s,refused_p99_s,queue_s,decode_s,solve_s,encode_s\n";
  }
  uint64_t failed = 0;
  for (const auto& [code, count] : result.failed) failed += count;
  file << ModeName(flags.mode) << ',' << flags.load.workers << ',' << flags.load.rate << ','
       << result.elapsed_s << ',' << result.answered.count() << ',' << result.refused.count() << ','
       << failed;
  for (const double share : kShares) file << ',' << result.answered.Percentile(share);
  file << ',' << result.refused.Percentile(0.5) << ',' << result.refused.Percentile(0.99) << ','
       << result.queue_s << ',' << result.decode_s << ',' << result.solve_s << ','
       << result.encode_s << '\n';
  file.close();
  if (file) return 0;
  return Report(
      {ErrorCode::kInvalidArgument, flags.csv + ": cannot write: " + std::strerror(errno), ""});
}

int RunOnce(const BenchFlags& flags) {
  const auto result = RunLoad(flags.load, ConnectorTo(flags.server, flags));
  if (!result) return Report(result.error());
  if (result->elapsed_s == 0) {
    std::fprintf(stderr, "sap-client: interrupted before the measurement\n");
    return kInterrupted;
  }
  PrintHead();
  PrintLine("answered", result->answered, result->elapsed_s);
  if (result->refused.count() > 0) PrintLine("refused", result->refused, result->elapsed_s);
  for (const auto& [code, count] : result->failed) {
    std::printf("%s: %llu\n", code.c_str(), static_cast<unsigned long long>(count));
  }
  if (result->unsent > 0) {
    std::printf("not sent because all workers were waiting for answers: %llu\n",
                static_cast<unsigned long long>(result->unsent));
  }
  std::printf(
      "mean time on the server: queue %.1f us, decode %.1f us, solve %.1f us, encode %.1f us\n",
      result->queue_s * 1e6, result->decode_s * 1e6, result->solve_s * 1e6, result->encode_s * 1e6);
  if (const int error = WriteCsv(flags, *result); error != 0) return error;
  if (flags.load.cancelled->load()) return kInterrupted;
  return result->answered.count() > 0 ? 0 : kNotSolved;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Measures server, echo and embedded server in turn, so that other load of the machine affects all
// of them alike.
int Compare(const BenchFlags& flags) {
  Load load = flags.load;
  load.duration_s = flags.load.duration_s / (3.0 * flags.pairs);
  load.warmup_s = load.duration_s / 4;
  const std::string addresses[] = {flags.server, flags.echo, "embedded:"};
  std::vector<double> p50, p99, rate;
  Latencies all[3];
  double elapsed_s[3] = {};
  for (int pair = 0; pair < flags.pairs; ++pair) {
    LoadResult results[3];
    for (int i = 0; i < 3; ++i) {
      auto result = RunLoad(load, ConnectorTo(addresses[i], flags));
      if (!result) return Report(result.error());
      if (load.cancelled->load()) break;
      if (result->answered.count() == 0) {
        return Report({ErrorCode::kInternal, "no call was answered by " + addresses[i], ""});
      }
      results[i] = std::move(*result);
    }
    if (load.cancelled->load()) break;  // this round is not complete
    for (int i = 0; i < 3; ++i) {
      all[i].Add(results[i].answered);
      elapsed_s[i] += results[i].elapsed_s;
    }
    const auto ratio = [&](double share) {
      return results[0].answered.Percentile(share) /
             (results[1].answered.Percentile(share) + results[2].answered.Percentile(share));
    };
    p50.push_back(ratio(0.5));
    p99.push_back(ratio(0.99));
    const auto calls_per_s = [&](int i) {
      return static_cast<double>(results[i].answered.count()) / results[i].elapsed_s;
    };
    rate.push_back(calls_per_s(0) / calls_per_s(2));
  }
  if (p50.empty()) {
    std::fprintf(stderr, "sap-client: interrupted in the first round\n");
    return kInterrupted;
  }
  PrintHead();
  const char* kNames[] = {"server", "echo", "embedded"};
  for (int i = 0; i < 3; ++i) PrintLine(kNames[i], all[i], elapsed_s[i]);
  std::printf("server / (echo + embedded), median of %zu: p50 %.3f, p99 %.3f\n", p50.size(),
              Median(p50), Median(p99));
  std::printf("throughput of server / embedded, median of %zu: %.3f\n", rate.size(), Median(rate));
  return load.cancelled->load() ? kInterrupted : 0;
}

int Bench(BenchFlags flags) {
  for (const std::string& file : flags.files) {
    auto problem = LoadProblem(InputPath(file));
    if (!problem) return Report(problem.error());
    // In a session the previous step is the guess; in other modes a guess would leave little to
    // solve.
    problem->trees.guess_velocity.clear();
    problem->bodies.guess_velocity.clear();
    problem->contacts.law.guess_impulse.clear();
    problem->contacts.law.guess_angular_impulse.clear();
    problem->body_contacts.law.guess_impulse.clear();
    problem->body_contacts.law.guess_angular_impulse.clear();
    problem->rows.guess_impulse.clear();
    flags.load.problems.push_back(std::move(*problem));
  }
  for (const std::string& file : flags.recordings) {
    if (const auto added = AddRecording(file, flags.speed, &flags.load); !added) {
      return Report(added.error());
    }
  }
  if (flags.load.problems.empty()) {
    return Report({ErrorCode::kInvalidArgument, "no problems: give files or --recording", ""});
  }
  flags.load.options = flags.options;
  flags.load.mode = flags.mode;
  flags.load.cancelled = flags.load.options.call.cancelled = Interrupted();
  return flags.echo.empty() ? RunOnce(flags) : Compare(flags);
}

int Echo(const std::string& address, int threads, double busy_us) {
  const auto busy = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::micro>(busy_us));
  const std::string error = ServeEcho(address, threads, busy, [](const std::string& listening) {
    std::printf("listening on %s\n", listening.c_str());
    std::fflush(stdout);
  });
  return Report({ErrorCode::kUnavailable, error, ""});
}

}  // namespace

void AddBenchCommand(CLI::App* app, Run* run) {
  CLI::App* command =
      app->add_subcommand("bench", "Put load on a server and print latencies and throughput");
  const auto flags = std::make_shared<BenchFlags>();
  const std::map<std::string, LoadMode> modes{
      {"unary", LoadMode::kUnary}, {"session", LoadMode::kSession}, {"batch", LoadMode::kBatch}};
  CLI::Option* files =
      command->add_option("FILE", flags->files, "Problem files as for solve, sent in turn");
  CLI::Option* recording =
      command
          ->add_option("--recording", flags->recordings,
                       "Recording whose problems are sent at their recorded times")
          ->expected(1)
          ->excludes(files);
  command
      ->add_option("--speed", flags->speed,
                   "Factor on the recorded rate; 0: each when the previous one is answered")
      ->check(Between(0, 1e6))
      ->needs(recording)
      ->capture_default_str();
  command->add_option("--mode", flags->mode, "unary, session or batch")
      ->transform(OneOf(modes))
      ->default_str("session");
  command->add_option("--workers", flags->load.workers, "Workers, each with one call at a time")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command
      ->add_option("--connections", flags->load.connections,
                   "Connections that the workers share; 0: each has its own")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  command
      ->add_option(
          "--rate", flags->load.rate,
          "Calls per second of all workers; default: closed loop, each worker sends when answered")
      ->check(Between(0, 1e9))
      ->excludes(recording);
  command->add_option("--duration", flags->load.duration_s, "Time of the measurement in seconds")
      ->check(Between(1e-3, 1e6))
      ->capture_default_str();
  command->add_option("--warmup", flags->load.warmup_s, "Time before the measurement in seconds")
      ->check(Between(0, 1e6))
      ->capture_default_str();
  command->add_option("--batch-size", flags->load.batch_size, "Problems of a batch")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag_callback(
      "--retry-at-once", [flags] { flags->load.obey_retry_delay = false; },
      "Retry rejected calls at once, whatever delay the server asks for");
  CLI::Option* echo = command->add_option(
      "--compare-echo", flags->echo,
      "Address of sap-client echo: compare the server with it and with an embedded one");
  command->add_option("--pairs", flags->pairs, "Rounds of the comparison")
      ->check(CLI::Range(1, 100'000))
      ->needs(echo)
      ->capture_default_str();
  command->add_option("--csv", flags->csv, "File to append a line with all figures to")
      ->check(OutputFile())
      ->excludes(echo);
  AddServerFlags(command, flags.get());
  AddSolverFlags(command, flags.get());
  command->callback([=] { *run = [=] { return Bench(*flags); }; });
}

void AddEchoCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "echo", "Run a gRPC server without a solver that repeats responses, as a baseline");
  const auto address = std::make_shared<std::string>("127.0.0.1:0");
  const auto threads = std::make_shared<int>(1);
  command->add_option("--listen", *address, "HOST:PORT or unix:PATH")
      ->check(ListenAddress())
      ->capture_default_str();
  command->add_option("--threads", *threads, "Threads that answer")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  const auto busy_us = std::make_shared<double>(0);
  command
      ->add_option(
          "--busy-us", *busy_us,
          "Time in microseconds for which a thread spins before each answer, in place of a solve")
      ->check(Between(0, 1e7))
      ->capture_default_str();
  command->callback([=] { *run = [=] { return Echo(*address, *threads, *busy_us); }; });
}

}  // namespace sap::client
