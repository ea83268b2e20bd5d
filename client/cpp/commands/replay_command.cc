#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"

namespace sap::client {
namespace {

struct ReplayFlags : SolveFlags {
  std::vector<std::string> files;
};

void PrintLine(const std::string& file, const ReplayReport& report) {
  std::printf("%-44s %8d %10d %10d %15d\n", std::filesystem::path(file).filename().c_str(),
              report.records, report.identical, report.different, report.not_replayable);
  if (report.different > 0)
    std::printf("  first difference: %s\n", report.first_difference.c_str());
  if (report.not_replayable > 0) {
    std::printf("  first not replayable: %s\n", report.first_not_replayable.c_str());
  }
  if (report.truncated) std::printf("  the file ends within record %d\n", report.records + 1);
  if (!report.same_build) {
    std::printf(
        "  recorded with another version or instruction set: equal bits are not promised\n");
  }
  std::fflush(stdout);
}

int ReplayFiles(const ReplayFlags& flags) {
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  std::printf("%-44s %8s %10s %10s %15s\n", "recording", "records", "identical", "different",
              "not replayable");
  int exit_code = 0;
  for (const std::string& file : flags.files) {
    const auto report = client->Replay(file);
    if (!report) {
      exit_code = std::max(exit_code, Report(report.error()));
      continue;
    }
    PrintLine(file, *report);
    if (report->different > 0 || report->truncated) exit_code = std::max(exit_code, kNotSolved);
  }
  return exit_code;
}

}  // namespace

void AddReplayCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "replay", "Solve the problems of recordings again and compare the answers bit for bit");
  const auto flags = std::make_shared<ReplayFlags>();
  command
      ->add_option("FILE", flags->files, "Recordings by sap-client record or sap-server --record")
      ->required();
  AddServerFlags(command, flags.get());
  command->callback([=] { *run = [=] { return ReplayFiles(*flags); }; });
}

}  // namespace sap::client
