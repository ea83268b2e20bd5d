#include <cstdio>
#include <memory>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"

namespace sap::client {
namespace {

int PrintHealth(const std::string& server) {
  auto client = Client::Connect(server);
  if (!client) return Report(client.error());
  const auto serving = client->Health();
  if (!serving) return Report(serving.error());
  std::puts(*serving ? "SERVING" : "NOT_SERVING");
  return *serving ? 0 : kNotSolved;
}

}  // namespace

void AddHealthCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand("health", "Whether a server takes calls: then exit 0");
  const auto server = std::make_shared<std::string>();
  command->add_option("--server", *server, "HOST:PORT or unix:PATH")->required();
  command->callback([=] { *run = [=] { return PrintHealth(*server); }; });
}

}  // namespace sap::client
