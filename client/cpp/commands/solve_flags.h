// Flags of the subcommands that solve problems: the server, and the options of the solve.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "client/cpp/client.h"

namespace sap::client {

struct SolveFlags {
  std::string server{"embedded:"};
  ConnectOptions connect;
  SolveOptions options;
};

// --tls, --tls-ca, --tls-cert, --tls-key, --tls-server-name, --token-file.
void AddCredentialFlags(CLI::App* command, Credentials* credentials);

// --server, the flags above, --low-latency, and --threads of an embedded server.
void AddServerFlags(CLI::App* command, SolveFlags* flags);

// --tolerance, --islands, --newton, --max-iterations, --time-budget, --priority. Ranges of the
// schema are not checked here: the server does, and names the field.
void AddSolverFlags(CLI::App* command, SolveFlags* flags);

}  // namespace sap::client
