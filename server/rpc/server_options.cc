#include "server/rpc/server_options.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/impl/server_builder_option.h>

#include <memory>
#include <string>
#include <vector>

namespace sap {
namespace {

// gRPC adds the reflection service to every server of a process that links it.
class NoReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    const std::string reflection = grpc::reflection::ProtoServerReflectionPlugin().name();
    std::erase_if(*plugins, [&](const auto& plugin) { return plugin->name() == reflection; });
  }
};

}  // namespace

void SetCommonOptions(grpc::ServerBuilder* builder) {
  // By default a second server could bind the same port, and the kernel would distribute clients
  // over both.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // gRPC compares only the compressed length with the message limit, so a megabyte could inflate to
  // gigabytes. Calls with compressed messages end with UNIMPLEMENTED.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Fixed flow-control window: a client sends at most the initial window of a message before it is
  // read. With a window that adapts to the connection, rejected messages would arrive in full.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
}

void RemoveReflection(grpc::ServerBuilder* builder) {
  builder->SetOption(std::make_unique<NoReflection>());
}

}  // namespace sap
