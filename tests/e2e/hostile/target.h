// Knowledge of an attacker about the server: its address, and perhaps a token.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

namespace sap::test::hostile {

struct Target {
  std::string address;             // "127.0.0.1:PORT"
  std::string server_ca;           // PEM; empty: plain text
  std::string metrics_address;     // of the metrics endpoint
  std::string token;               // empty: a stranger
  std::string accomplice_token{};  // of a second attacker
  uint32_t source{0x7f000002};     // address of the attacker's own connections, 127.0.0.2
  // Files with these, for the client library; not of a stranger.
  std::string server_ca_file{};
  std::string token_file{};
};

// The same as the accomplice sees it.
inline Target AsAccomplice(Target target) {
  target.token = target.accomplice_token;
  return target;
}

// A new connection of gRPC's client, shared with no other channel.
inline std::shared_ptr<grpc::Channel> OpenChannel(const Target& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxSendMessageSize(-1);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!target.server_ca.empty()) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = target.server_ca;
    credentials = grpc::SslCredentials(options);
  }
  return grpc::CreateCustomChannel(target.address, credentials, arguments);
}

inline void Authorize(const Target& target, grpc::ClientContext* context) {
  if (!target.token.empty()) context->AddMetadata("authorization", "Bearer " + target.token);
}

}  // namespace sap::test::hostile
