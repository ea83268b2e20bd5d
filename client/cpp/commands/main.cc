// The command sap-client: solve, differentiate, simulate, record and replay problems, measure,
// query and operate servers.
#include <absl/synchronization/mutex.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "client/cpp/commands/commands.h"
#include "client/cpp/files/message_file.h"
#include "proto/flags/usage_error.h"

namespace sap::client {

int Report(const Error& error) {
  std::fprintf(stderr, "sap-client: %s: %s", Name(error.code), error.message.c_str());
  if (!error.request_id.empty()) std::fprintf(stderr, " (request id %s)", error.request_id.c_str());
  std::fprintf(stderr, "\n");
  return kFailed;
}

// Why standard output did not take something; 0: it did, or the reason is not known yet.
static int output_errno = 0;

int Write(const std::string& text, const std::string& path) {
  if (path.empty()) {
    if (std::fputs(text.c_str(), stdout) < 0) output_errno = errno;
    return 0;
  }
  const auto written = WriteFile(text, path);
  return written ? 0 : Report(written.error());
}

// The exit code, unless a part of what was printed is lost, as on a full disk.
static int Finish(int exit_code) {
  if (std::fflush(stdout) != 0) output_errno = errno;
  if (output_errno == 0 && std::ferror(stdout) == 0) return exit_code;
  const std::string reason =
      output_errno == 0 ? "" : std::string(": ") + std::strerror(output_errno);
  return Report({ErrorCode::kInvalidArgument, "standard output: cannot write" + reason, ""});
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
    return Finish(sap::ExitAfter(app, error, kFailed));
  }
  return Finish(run());
}
