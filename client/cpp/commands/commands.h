// The subcommands of sap-client. Each adds itself to the command line, and when it was chosen, sets
// what is to be run; that returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "client/cpp/error.h"

namespace sap::client {

using Run = std::function<int()>;

// Exit codes besides 0.
// An answer came, but not every island converged; or it differs from the recorded one; or the
// server is not serving.
constexpr int kNotSolved = 1;
constexpr int kFailed = 2;  // no answer

void AddSolveCommand(CLI::App* app, Run* run);
void AddInfoCommand(CLI::App* app, Run* run);
void AddHealthCommand(CLI::App* app, Run* run);
void AddSimulateCommand(CLI::App* app, Run* run);
void AddRecordCommand(CLI::App* app, Run* run);
void AddReplayCommand(CLI::App* app, Run* run);
void AddBenchCommand(CLI::App* app, Run* run);
void AddEchoCommand(CLI::App* app, Run* run);
void AddAdminCommand(CLI::App* app, Run* run);

// Prints the error on standard error, with its code; returns kFailed.
int Report(const Error& error);

}  // namespace sap::client
