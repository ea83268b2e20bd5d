#include <cstdio>
#include <memory>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"

namespace sap::client {
namespace {

int PrintHealth(const SolveFlags& flags) {
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  const auto serving = client->Health();
  if (!serving) return Report(serving.error());
  std::puts(*serving ? "SERVING" : "NOT_SERVING");
  return *serving ? 0 : kNotSolved;
}

}  // namespace

void AddHealthCommand(CLI::App* app, Run* run) {
  CLI::App* command =
      app->add_subcommand("health", "Print whether a server takes calls; exit code 0 if so");
  const auto flags = std::make_shared<SolveFlags>();
  command->add_option("--server", flags->server, kServerHelp)->required();
  AddCredentialFlags(command, &flags->connect.credentials);
  command->callback([=] { *run = [=] { return PrintHealth(*flags); }; });
}

}  // namespace sap::client
