#include <algorithm>
#include <cstdio>
#include <memory>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/solve_flags.h"
#include "client/cpp/files/message_file.h"
#include "client/cpp/transport/remote_backend.h"
#include "proto/codec/engine_messages.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {
namespace {

struct DifferentiateFlags : SolveFlags {
  std::string file;
  std::string output;
};

tl::expected<v1::DifferentiateRequest, Error> ReadRequest(const std::string& path) {
  const auto text = ReadFile(InputPath(path));
  if (!text) return tl::unexpected(text.error());
  v1::DifferentiateRequest request;
  if (auto read = JsonToMessage(*text, &request); !read) {
    read.error().message = path + ": " + read.error().message;
    return tl::unexpected(read.error());
  }
  return request;
}

Status Answer(const DifferentiateFlags& flags, const v1::DifferentiateRequest& request,
              v1::DifferentiateResponse* response) {
  if (flags.server != "embedded:") return PassOn(flags.server, flags.connect, request, response);
  Engine engine(flags.connect.threads > 0 ? flags.connect.threads : DefaultThreads());
  const EngineStatus status = sap::Differentiate(&engine, request, response);
  if (!status) return FromEngine(status.error());
  return {};
}

int Differentiate(const DifferentiateFlags& flags) {
  const auto request = ReadRequest(flags.file);
  if (!request) return Report(request.error());
  v1::DifferentiateResponse response;
  if (auto status = Answer(flags, *request, &response); !status) {
    status.error().message = flags.file + ": " + status.error().message;
    return Report(status.error());
  }
  const int failure = Write(MessageToJson(response) + "\n", flags.output);
  if (failure != 0) return failure;
  const bool accurate = std::ranges::all_of(response.adjoint_status(), [](int status) {
    return status == v1::ADJOINT_STATUS_DIFFERENTIATED;
  });
  return accurate ? 0 : kNotSolved;
}

}  // namespace

void AddDifferentiateCommand(CLI::App* app, Run* run) {
  CLI::App* command = app->add_subcommand(
      "differentiate", "Derivatives of a solution: a DifferentiateRequest as JSON, also gzipped");
  const auto flags = std::make_shared<DifferentiateFlags>();
  command->add_option("FILE", flags->file, "The request: problem, cotangents, tangents, options")
      ->required();
  command->add_option("--output", flags->output, "File for the response; default: standard output");
  AddServerFlags(command, flags.get());
  command->callback([=] { *run = [=] { return Differentiate(*flags); }; });
}

}  // namespace sap::client
