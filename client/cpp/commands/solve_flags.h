// Flags of the subcommands that solve problems: the server, and the options of the solve.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "client/cpp/client.h"

namespace sap::client {

struct SolveFlags {
  std::string server{"embedded:"};
  ConnectOptions connect;
  SolveOptions options;
};

// Accepts the names and replaces them by their values. CLI11's own CheckedTransformer prints values
// of enums as control characters, in help texts and errors.
template <typename Value>
CLI::Validator OneOf(const std::map<std::string, Value>& values) {
  std::string names;
  for (const auto& [name, value] : values) names += (names.empty() ? "" : ", ") + name;
  const auto replace = [values, names](std::string& text) {
    const auto found = values.find(text);
    if (found == values.end()) return "'" + text + "' is not one of " + names;
    text = CLI::detail::value_string(found->second);
    return std::string();
  };
  return CLI::Validator(replace, "{" + names + "}");
}

// Numbers from `low` to `high`. CLI11's own ranges take NaN.
CLI::Validator Between(double low, double high);

// A file that is written at the end of a long command, whose folder has to be there before.
CLI::Validator OutputFile();

// --tls, --tls-ca, --tls-cert, --tls-key, --tls-server-name, --token-file. Each needs --server,
// which is to be there before.
void AddCredentialFlags(CLI::App* command, Credentials* credentials);

// What --server accepts.
inline constexpr const char* kServerHelp =
    "HOST:PORT, a list of these with commas, unix:PATH, dns:///NAME:PORT or xds:///NAME";

// --server, the flags above, --low-latency, --allow-mixed-servers, and --threads of an embedded
// server.
void AddServerFlags(CLI::App* command, SolveFlags* flags);

// --tolerance, --islands, --newton, --coulomb, --max-iterations, --time-budget, --priority. Ranges
// of the schema are not checked here: the server does, and names the field.
void AddSolverFlags(CLI::App* command, SolveFlags* flags);

}  // namespace sap::client
