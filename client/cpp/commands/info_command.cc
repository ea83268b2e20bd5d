#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"

namespace sap::client {
namespace {

int PrintInfo(const SolveFlags& flags) {
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  const auto info = client->Info();
  if (!info) return Report(info.error());
  std::printf("version               %s\n", info->version.c_str());
  std::printf("instruction set       %s\n", info->instruction_set.c_str());
  std::printf("boot id               %s\n", info->boot_id.c_str());
  std::printf("processors            %u\n", info->processors);
  std::printf("solver threads        %u\n", info->solver_threads);
  std::printf("max message bytes     %" PRIu64 "\n", info->max_message_bytes);
  std::printf("max trees             %u\n", info->max_trees);
  std::printf("max tree dofs         %u\n", info->max_tree_dofs);
  std::printf("max contacts          %u\n", info->max_contacts);
  std::printf("max rows              %u\n", info->max_rows);
  std::printf("max row entries       %u\n", info->max_row_entries);
  std::printf("max row pairs         %u\n", info->max_row_pairs);
  std::printf("max iterations        %u\n", info->max_iterations);
  std::printf("max concurrent calls  %u\n", info->max_concurrent_calls);
  std::printf("max batch problems    %u\n", info->max_batch_problems);
  std::printf("max sessions          %u\n", info->max_sessions);
  std::printf("max client sessions   %u\n", info->max_client_sessions);
  std::printf("max steps in flight   %u\n", info->max_steps_in_flight);
  std::printf("max solve memory      %" PRIu64 "\n", info->max_solve_memory_bytes);
  std::printf("max solve time        %g s\n", info->max_solve_s);
  std::printf("max calls per second  %g%s\n", info->max_client_calls_per_s,
              info->max_client_calls_per_s == 0 ? " (no limit)" : "");
  std::printf("max client calls      %u\n", info->max_client_calls);
  std::printf("max held bytes        %" PRIu64 "\n", info->max_held_bytes);
  std::printf("max client bytes      %" PRIu64 "\n", info->max_client_bytes);
  std::printf("queue timeout         %g s\n", info->queue_timeout_s);
  std::printf("read timeout          %g s\n", info->read_timeout_s);
  std::printf("session idle          %g s\n", info->session_idle_s);
  std::printf("connection age        %g s%s\n", info->connection_age_s,
              info->connection_age_s == 0 ? " (no limit)" : "");
  std::printf("max derivatives       %u\n", info->max_derivatives);
  std::printf("high priority         %s\n", info->high_priority ? "yes" : "served as normal");
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
