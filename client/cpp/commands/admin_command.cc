#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"
#include "client/cpp/transport/address.h"
#include "client/cpp/transport/channel.h"
#include "client/cpp/transport/grpc_call.h"
#include "sap/v1/admin_service.grpc.pb.h"

namespace sap::client {
namespace {

constexpr std::chrono::seconds kTimeout{10};

struct AdminFlags {
  std::string server;
  Credentials credentials;
  v1::LogLevel level{v1::LOG_LEVEL_UNSPECIFIED};
  std::string directory;
};

// Makes one call on a new connection.
template <typename Request, typename Response, typename Method>
tl::expected<Response, Error> Call(const AdminFlags& flags, Method method, const Request& request) {
  const auto address = ParseAddress(flags.server);
  if (!address) return tl::unexpected(address.error());
  if (address->kind != Address::Kind::kOne) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "--server is '" + flags.server +
                                    "'; it must be HOST:PORT or unix:PATH: operator calls are made "
                                    "to one server",
                                ""});
  }
  const auto channel = MakeChannel(*address, flags.credentials);
  if (!channel) return tl::unexpected(channel.error());
  const auto stub = v1::AdminService::NewStub(channel->channel);
  grpc::ClientContext context;
  const CallStart start{.authorization = channel->authorization, .encrypted = channel->encrypted};
  start.Prepare(kTimeout, /*lost_attempts=*/0, &context);
  Response response;
  const grpc::Status status = (stub.get()->*method)(&context, request, &response);
  if (status.ok()) return response;
  Error error = ToError(status, context, start.encrypted);
  if (error.code == ErrorCode::kUnimplemented) {
    error.message = flags.server +
                    " has no such call: --server must be the address of the server's "
                    "--admin-listen";
  }
  return tl::unexpected(std::move(error));
}

int Drain(const AdminFlags& flags) {
  const auto done = Call<v1::DrainRequest, v1::DrainResponse>(flags, &v1::AdminService::Stub::Drain,
                                                              v1::DrainRequest());
  return done ? 0 : Report(done.error());
}

int SetLogLevel(const AdminFlags& flags) {
  v1::SetLogLevelRequest request;
  request.set_level(flags.level);
  const auto done = Call<v1::SetLogLevelRequest, v1::SetLogLevelResponse>(
      flags, &v1::AdminService::Stub::SetLogLevel, request);
  return done ? 0 : Report(done.error());
}

int SetRecording(const AdminFlags& flags) {
  v1::SetRecordingRequest request;
  request.set_directory(flags.directory);
  const auto done = Call<v1::SetRecordingRequest, v1::SetRecordingResponse>(
      flags, &v1::AdminService::Stub::SetRecording, request);
  if (!done) return Report(done.error());
  if (done->path().empty()) {
    std::fprintf(stderr, "sap-client: there is no recording to end\n");
  } else {
    std::puts(done->path().c_str());
  }
  return 0;
}

}  // namespace

void AddAdminCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "admin", "Drain a server, set its log level, or start and end its recordings");
  command->require_subcommand(1);
  const auto flags = std::make_shared<AdminFlags>();
  command->add_option("--server", flags->server, "Address of the server's --admin-listen")
      ->required();
  AddCredentialFlags(command, &flags->credentials);
  command
      ->add_subcommand("drain", "Finish the running calls and exit, as at SIGTERM; returns at once")
      ->callback([=] { *run = [=] { return Drain(*flags); }; });
  const std::map<std::string, v1::LogLevel> levels{{"debug", v1::LOG_LEVEL_DEBUG},
                                                   {"info", v1::LOG_LEVEL_INFO},
                                                   {"warning", v1::LOG_LEVEL_WARNING},
                                                   {"error", v1::LOG_LEVEL_ERROR}};
  CLI::App* log_level = command->add_subcommand("log-level", "Set the log level");
  log_level->add_option("LEVEL", flags->level, "debug, info, warning or error")
      ->required()
      ->transform(OneOf(levels));
  log_level->callback([=] { *run = [=] { return SetLogLevel(*flags); }; });
  CLI::App* record = command->add_subcommand(
      "record", "Start a recording, or end the current one; prints its file");
  record->add_option("DIRECTORY", flags->directory,
                     "On the server's machine; without it: end the recording");
  record->callback([=] { *run = [=] { return SetRecording(*flags); }; });
}

}  // namespace sap::client
