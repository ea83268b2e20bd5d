#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/problem_file.h"
#include "client/cpp/solution_json.h"

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;

struct SolveFlags {
  std::vector<std::string> files;
  std::string server{"embedded:"};
  std::string output;
  ConnectOptions connect;
  SolveOptions options;
};

// What the table says about one solve.
struct Summary {
  const char* worst_status{"CONVERGED"};
  int iterations{0};
  double momentum_residual{0};
  double optimality_gap_bound{0};
};

Summary Summarize(const Solution& solution) {
  Summary summary;
  SolveStatus worst = SolveStatus::kConverged;  // statuses are listed from best to worst
  for (const Island& island : solution.islands) {
    worst = std::max(worst, island.status);
    summary.iterations = std::max(summary.iterations, island.iterations);
    summary.momentum_residual = std::max(summary.momentum_residual, island.momentum_residual);
    summary.optimality_gap_bound += island.optimality_gap_bound;
  }
  summary.worst_status = Name(worst);
  return summary;
}

void PrintTableHead() {
  std::printf("%-36s %7s %8s %7s %-19s %10s %10s %11s %10s\n", "problem", "bodies", "contacts",
              "islands", "worst status", "iterations", "residual", "gap bound/J", "ms");
}

void PrintTableLine(const std::string& file, const Solution& solution, double time_ms) {
  const Summary summary = Summarize(solution);
  std::printf("%-36s %7zu %8zu %7zu %-19s %10d %10.2e %11.2e %10.3f\n",
              std::filesystem::path(file).filename().c_str(), solution.island_of_tree.size(),
              solution.impulse.size() / 3, solution.islands.size(), summary.worst_status,
              summary.iterations, summary.momentum_residual, summary.optimality_gap_bound, time_ms);
  std::fflush(stdout);
}

int WriteJson(const Solution& solution, const std::string& path) {
  const std::string text = SolutionToJson(solution) + "\n";
  if (path.empty()) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : kFailed;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return 0;
  return Report({ErrorCode::kInvalidArgument, path + ": cannot write", ""});
}

// Solves one file and prints its line of the table, or its solution if it is the only one.
int SolveFile(const std::string& file, const SolveFlags& flags, Client* client) {
  const auto problem = LoadProblem(file);
  if (!problem) return Report(problem.error());
  const Clock::time_point start = Clock::now();
  auto solution = client->Solve(*problem, flags.options);
  const double time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (!solution) {
    solution.error().message = file + ": " + solution.error().message;
    return Report(solution.error());
  }
  if (flags.files.size() > 1) {
    PrintTableLine(file, *solution, time_ms);
  } else if (const int failure = WriteJson(*solution, flags.output); failure != 0) {
    return failure;
  }
  return solution->Solved() ? 0 : kNotSolved;
}

int SolveFiles(const SolveFlags& flags) {
  if (flags.files.size() > 1 && !flags.output.empty()) {
    return Report({ErrorCode::kInvalidArgument, "--output takes the solution of one file", ""});
  }
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  if (flags.files.size() > 1) PrintTableHead();
  int exit_code = 0;
  for (const std::string& file : flags.files) {
    exit_code = std::max(exit_code, SolveFile(file, flags, &*client));
  }
  return exit_code;
}

// Values outside the ranges of the schema are let through: the server names what is wrong with
// them. Only what its message cannot carry is refused here.
std::string SetTimeBudget(const std::string& text, SolveOptions* options) {
  constexpr double kLongest_s = 1e9;
  double seconds = 0;
  if (!CLI::detail::lexical_cast(text, seconds) || !(std::abs(seconds) <= kLongest_s)) {
    return "'" + text + "' is no time in seconds up to 1e9";
  }
  options->time_budget = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  return "";
}

}  // namespace

void AddSolveCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "solve", "Solve contact problems from files: JSON or binary, also gzipped");
  const auto flags = std::make_shared<SolveFlags>();
  SolverOptions* solver = &flags->options.solver;
  const std::map<std::string, bool> switches{{"on", true}, {"off", false}};
  const std::map<std::string, NewtonMethod> methods{{"plain", NewtonMethod::kPlain},
                                                    {"accelerated", NewtonMethod::kAccelerated}};
  command->add_option("FILE", flags->files, "Problems; a table if there are several")->required();
  CLI::Option* server =
      command->add_option("--server", flags->server, "HOST:PORT or unix:PATH; embedded without");
  command->add_option("--output", flags->output, "File for the solution instead of stdout");
  command->add_option("--tolerance", solver->relative_tolerance, "Relative tolerance, 1e-6");
  command
      ->add_option("--islands", solver->islands, "on: solve each island by itself; off: all as one")
      ->transform(CLI::CheckedTransformer(switches));
  command->add_option("--newton", solver->newton, "plain or accelerated")
      ->transform(CLI::CheckedTransformer(methods));
  command->add_option("--max-iterations", solver->max_iterations, "Newton iterations per island")
      ->check(CLI::NonNegativeNumber);
  command->add_option_function<std::string>(
      "--time-budget",
      [flags](const std::string& text) {
        const std::string error = SetTimeBudget(text, &flags->options);
        if (!error.empty()) throw CLI::ValidationError("--time-budget", error);
      },
      "Seconds after which the best iterate is returned");
  command->add_option("--threads", flags->connect.threads, "Solver threads when embedded")
      ->check(CLI::Range(1, 256))
      ->excludes(server);
  command->callback([=] { *run = [=] { return SolveFiles(*flags); }; });
}

}  // namespace sap::client
