// Flags of the subcommands that solve problems: the server, and the options of the solve.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "client/cpp/client.h"
#include "proto/flags/flag_checks.h"

namespace sap::client {

struct SolveFlags {
  std::string server{"embedded:"};
  ConnectOptions connect;
  SolveOptions options;
};

// --rest HORIZON,TOLERANCE.
struct RestFlag {
  double horizon{0};    // of the certificate [s]
  double tolerance{0};  // drift up to which an island is at rest [m]
};

// A file that is written at the end of a long command, whose folder has to be there before.
CLI::Validator OutputFile();

// --tls, --tls-ca, --tls-cert, --tls-key, --tls-server-name, --token-file. Each needs --server,
// which is to be there before.
void AddCredentialFlags(CLI::App* command, Credentials* credentials);

// The addresses that --server accepts.
inline constexpr const char* kServerHelp =
    "HOST:PORT, a list of these with commas, unix:PATH, dns:///NAME:PORT or xds:///NAME";

// --server, the flags above, --low-latency, --allow-mixed-servers, --scene-connections, and
// --threads of an embedded server.
void AddServerFlags(CLI::App* command, SolveFlags* flags);

// --tolerance, --islands, --newton, --coulomb, --max-iterations, --time-budget, --priority. Ranges
// of the schema are not checked here: the server does, and names the field.
void AddSolverFlags(CLI::App* command, SolveFlags* flags);

// --rest, which also asks for the certificate in the options.
void AddRestFlag(CLI::App* command, const char* help, SolveOptions* options,
                 std::optional<RestFlag>* rest);

}  // namespace sap::client
