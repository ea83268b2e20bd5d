#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"
#include "client/cpp/problem_file.h"
#include "client/cpp/recording.h"

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;

struct RecordFlags : SolveFlags {
  std::vector<std::string> files;
  std::string output;
};

// Solves one file, records the outcome and counts it.
int RecordFile(const std::string& file, const RecordFlags& flags, Client* client,
               RecordingWriter* writer, int* records) {
  const auto problem = LoadProblem(InputPath(file));
  if (!problem) return Report(problem.error());
  const Clock::time_point start = Clock::now();
  const auto solution = client->Solve(*problem, flags.options);
  const double duration_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (const auto written = writer->Append(*problem, flags.options, solution, duration_s);
      !written) {
    return Report(written.error());
  }
  ++*records;
  if (solution) return solution->Solved() ? 0 : kNotSolved;
  Error error = solution.error();
  error.message = file + ": " + error.message;
  return Report(error);
}

int RecordFiles(const RecordFlags& flags) {
  if (std::ranges::find(flags.files, flags.output) != flags.files.end()) {
    return Report({ErrorCode::kInvalidArgument, flags.output + ": is one of the problems", ""});
  }
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  const auto server = client->Info();
  if (!server) return Report(server.error());
  auto writer = RecordingWriter::Create(flags.output, *server);
  if (!writer) return Report(writer.error());
  int exit_code = 0;
  int records = 0;
  for (const std::string& file : flags.files) {
    exit_code = std::max(exit_code, RecordFile(file, flags, &*client, &*writer, &records));
  }
  if (const auto closed = writer->Close(); !closed) return Report(closed.error());
  std::printf("%d problems and answers in %s\n", records, flags.output.c_str());
  return exit_code;
}

}  // namespace

void AddRecordCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "record", "Solve problem files and record them with their answers, for replay");
  const auto flags = std::make_shared<RecordFlags>();
  command->add_option("FILE", flags->files, "Problem files as for solve")->required();
  command->add_option("--output", flags->output, "File of the recording")->required();
  AddServerFlags(command, flags.get());
  AddSolverFlags(command, flags.get());
  command->callback([=] { *run = [=] { return RecordFiles(*flags); }; });
}

}  // namespace sap::client
