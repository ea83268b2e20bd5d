// The command sap-client: solve, differentiate, simulate, record and replay problems, measure,
// query and operate servers.
#include <absl/synchronization/mutex.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/commands/commands.h"
#include "client/cpp/transport/message_file.h"

namespace sap::client {

int Report(const Error& error) {
  std::fprintf(stderr, "sap-client: %s: %s", Name(error.code), error.message.c_str());
  if (!error.request_id.empty()) std::fprintf(stderr, " (request id %s)", error.request_id.c_str());
  std::fprintf(stderr, "\n");
  return kFailed;
}

int Write(const std::string& text, const std::string& path) {
  if (path.empty()) return std::fputs(text.c_str(), stdout), 0;
  const auto written = WriteFile(text, path);
  return written ? 0 : Report(written.error());
}

// The exit code, unless a part of what was printed is lost, as on a full disk.
static int Finish(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return Report({ErrorCode::kInvalidArgument, "standard output: cannot write", ""});
}

// Characters to insert, delete or replace (Levenshtein).
static int Distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);  // distances of the beginnings of b to that of a
  std::iota(row.begin(), row.end(), 0);
  for (const char of_a : a) {
    int diagonal = row[0]++;
    for (size_t j = 1; j < row.size(); ++j) {
      const int replaced = diagonal + (of_a != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, diagonal + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Names the word in the place of a missing subcommand, which CLI11 does not, and the nearest name.
static std::string UnknownCommand(const CLI::App& app) {
  const CLI::App* parent = &app;
  while (!parent->get_subcommands().empty()) parent = parent->get_subcommands().front();
  if (parent->get_require_subcommand_min() == 0 || parent->remaining().empty()) return "";
  const std::string word = parent->remaining().front();
  std::string nearest;
  int least = 3;  // more is another word
  for (const CLI::App* known : parent->get_subcommands([](const CLI::App*) { return true; })) {
    const int distance = Distance(word, known->get_name());
    if (distance < least) least = distance, nearest = known->get_name();
  }
  return "'" + word + "' is not a " + (word.starts_with('-') ? "flag" : "command") +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

}  // namespace sap::client

int main(int argc, char** argv) {
  using namespace sap::client;
  // Debian's Abseil checks for lock cycles at every lock of gRPC, which costs more than the lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("Client of sap-server.", "sap-client");
  app.require_subcommand(1);
  app.set_version_flag("--version", SAP_VERSION);
  Run run;
  AddSolveCommand(&app, &run);
  AddDifferentiateCommand(&app, &run);
  AddInfoCommand(&app, &run);
  AddHealthCommand(&app, &run);
  AddSimulateCommand(&app, &run);
  AddRecordCommand(&app, &run);
  AddReplayCommand(&app, &run);
  AddBenchCommand(&app, &run);
  AddEchoCommand(&app, &run);
  AddAdminCommand(&app, &run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = UnknownCommand(app);
    const bool is_help = error.get_exit_code() == 0;
    app.exit(is_help || unknown.empty() ? error : CLI::ParseError(unknown, error.get_exit_code()));
    return Finish(is_help ? 0 : kFailed);
  }
  return Finish(run());
}
