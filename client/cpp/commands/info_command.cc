#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"

namespace sap::client {
namespace {

template <typename Value>
void Print(std::string name, const Value& value) {
  std::ranges::replace(name, '_', ' ');
  std::cout << std::left << std::setw(24) << name << std::boolalpha << value << "\n";
}

int PrintInfo(const SolveFlags& flags) {
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  const auto info = client->Info();
  if (!info) return Report(info.error());
  Print("version", info->version);
  Print("instruction set", info->instruction_set);
  Print("boot id", info->boot_id);
  Print("processors", info->processors);
  Print("solver threads", info->solver_threads);
#define SAP_LIMIT(type, name, ...) Print(#name, info->name);
#include "solver/engine/server_limits.inc"
  return 0;
}

}  // namespace

void AddInfoCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand("info", "Version, limits and hardware of a server");
  const auto flags = std::make_shared<SolveFlags>();
  command->add_option("--server", flags->server,
                      std::string(kServerHelp) + "; default: an embedded server");
  AddCredentialFlags(command, &flags->connect.credentials);
  command->callback([=] { *run = [=] { return PrintInfo(*flags); }; });
}

}  // namespace sap::client
