// The subcommands of sap-client. Each function adds one to the command line. Parsing stores the
// chosen one in *run, which returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "client/cpp/error.h"

namespace sap::client {

using Run = std::function<int()>;

// Exit codes besides 0.
// There is an answer, but an island did not converge, or a replay differs, or the server is not
// serving.
constexpr int kNotSolved = 1;
constexpr int kFailed = 2;  // there is no answer

void AddSolveCommand(CLI::App* app, Run* run);
void AddDifferentiateCommand(CLI::App* app, Run* run);
void AddInfoCommand(CLI::App* app, Run* run);
void AddHealthCommand(CLI::App* app, Run* run);
void AddSimulateCommand(CLI::App* app, Run* run);
void AddRecordCommand(CLI::App* app, Run* run);
void AddReplayCommand(CLI::App* app, Run* run);
void AddBenchCommand(CLI::App* app, Run* run);
void AddEchoCommand(CLI::App* app, Run* run);
void AddAdminCommand(CLI::App* app, Run* run);

// Prints the code and message of the error to standard error; returns kFailed.
int Report(const Error& error);

// The path of an input file; "-" is standard input.
inline std::string InputPath(const std::string& file) { return file == "-" ? "/dev/stdin" : file; }

// Writes a file, gzipped where its name ends with .gz, or to standard output where `path` is empty.
// Returns the exit code; main reports what standard output did not take.
int Write(const std::string& text, const std::string& path);

}  // namespace sap::client
