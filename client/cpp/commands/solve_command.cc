#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"
#include "client/cpp/problem_file.h"
#include "client/cpp/solution_json.h"

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;

struct SolveFilesFlags : SolveFlags {
  std::vector<std::string> files;
  std::string output;
  std::optional<RestFlag> rest;
};

// One line of the table.
struct Summary {
  const char* worst_status{"CONVERGED"};
  int iterations{0};
  double momentum_residual{0};
  double optimality_gap_bound{0};
  int resting{0};  // islands
};

Summary Summarize(const Solution& solution, const std::optional<RestFlag>& rest) {
  Summary summary;
  // The enum is ordered from best to worst, except for its last.
  const auto badness = [](SolveStatus status) {
    return status == SolveStatus::kCoulombLimit ? SolveStatus::kIterationLimit : status;
  };
  SolveStatus worst = SolveStatus::kConverged;
  for (const Island& island : solution.islands) {
    if (badness(island.status) > badness(worst)) worst = island.status;
    summary.iterations = std::max(summary.iterations, island.iterations);
    summary.momentum_residual = std::max(summary.momentum_residual, island.momentum_residual);
    summary.optimality_gap_bound += island.optimality_gap_bound;
    summary.resting += rest && island.rest_drift <= rest->tolerance ? 1 : 0;
  }
  summary.worst_status = Name(worst);
  return summary;
}

void PrintTableHead(const SolveFilesFlags& flags) {
  std::printf("%-36s %7s %8s %7s %7s %-19s %10s %10s %11s %10s%s\n", "problem", "bodies",
              "contacts", "rows", "islands", "worst status", "iterations", "residual",
              "gap bound/J", "ms", flags.rest ? " at rest" : "");
}

void PrintTableLine(const std::string& file, const SolveFilesFlags& flags, const Solution& solution,
                    double time_ms) {
  const Summary summary = Summarize(solution, flags.rest);
  std::printf("%-36s %7zu %8zu %7zu %7zu %-19s %10d %10.2e %11.2e %10.3f",
              std::filesystem::path(file).filename().c_str(), solution.island_of_tree.size(),
              solution.impulse.size() / 3, solution.row_impulse.size(), solution.islands.size(),
              summary.worst_status, summary.iterations, summary.momentum_residual,
              summary.optimality_gap_bound, time_ms);
  if (flags.rest) std::printf(" %7d", summary.resting);
  std::printf("\n");
  std::fflush(stdout);
}

// Solves one file and prints its line of the table, or the solution if it is the only file.
int SolveFile(const std::string& file, const SolveFilesFlags& flags, Client* client) {
  const auto problem = LoadProblem(InputPath(file));
  if (!problem) return Report(problem.error());
  const Clock::time_point start = Clock::now();
  auto solution = client->Solve(*problem, flags.options);
  const double time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (!solution) {
    solution.error().message = file + ": " + solution.error().message;
    return Report(solution.error());
  }
  if (flags.files.size() > 1) {
    PrintTableLine(file, flags, *solution, time_ms);
  } else if (Write(SolutionToJson(*solution) + "\n", flags.output) != 0) {
    return kFailed;
  }
  return solution->Solved() ? 0 : kNotSolved;
}

int SolveFiles(const SolveFilesFlags& flags) {
  if (flags.files.size() > 1 && !flags.output.empty()) {
    return Report({ErrorCode::kInvalidArgument, "--output needs exactly one problem file", ""});
  }
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  if (flags.files.size() > 1) PrintTableHead(flags);
  int exit_code = 0;
  for (const std::string& file : flags.files) {
    exit_code = std::max(exit_code, SolveFile(file, flags, &*client));
  }
  return exit_code;
}

}  // namespace

void AddSolveCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "solve", "Solve problem files: JSON or binary, also gzipped; - is standard input");
  const auto flags = std::make_shared<SolveFilesFlags>();
  command->add_option("FILE", flags->files, "Problem files; several give a table")->required();
  command->add_option("--output", flags->output, "File for the solution; default: standard output");
  AddServerFlags(command, flags.get());
  AddSolverFlags(command, flags.get());
  AddRestFlag(command,
              "HORIZON,TOLERANCE: bound how far islands move within so many seconds if nothing "
              "changes; tables count those that move less than TOLERANCE [m] as at rest",
              &flags->options, &flags->rest);
  command->callback([=] { *run = [=] { return SolveFiles(*flags); }; });
}

}  // namespace sap::client
