// Flags of the subcommands that solve problems: by whom, and how.
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

// --tls, --tls-ca, --tls-cert, --tls-key, --tls-server-name, --token-file: what is shown to a
// server.
void AddCredentialFlags(CLI::App* command, Credentials* credentials);

// --server with these and --low-latency, or --threads of an embedded server.
void AddServerFlags(CLI::App* command, SolveFlags* flags);

// --tolerance, --islands, --newton, --max-iterations, --time-budget,
// --priority. Values outside the ranges of
// the schema are let through: the server names what is wrong with them.
void AddSolverFlags(CLI::App* command, SolveFlags* flags);

}  // namespace sap::client
