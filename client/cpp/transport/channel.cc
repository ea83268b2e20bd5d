#include "client/cpp/transport/channel.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace sap::client {
namespace {

// After a server has vanished without closing the connection, calls fail within the sum of these.
constexpr int kKeepalive_ms = 20'000;
constexpr int kKeepaliveTimeout_ms = 10'000;

tl::unexpected<Error> InvalidArgument(const std::string& message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, message, ""});
}

// The contents of a file; of an empty path, an empty text.
tl::expected<std::string, Error> Read(const std::string& path) {
  if (path.empty()) return "";
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) return InvalidArgument(path + ": " + std::strerror(errno));
  return text;
}

// Whether the address is one of this machine. A name other than localhost can lead anywhere.
bool IsLocal(const std::string& address) {
  if (address.starts_with("unix:")) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  in_addr parsed{};
  return host.starts_with("127.") && inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

tl::expected<std::shared_ptr<grpc::ChannelCredentials>, Error> MakeCredentials(
    const Credentials& credentials) {
  const bool has_files = !credentials.server_ca.empty() || !credentials.certificate.empty() ||
                         !credentials.key.empty();
  if (!credentials.tls && !has_files) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  const auto authority = Read(credentials.server_ca);
  if (!authority) return tl::unexpected(authority.error());
  const auto certificate = Read(credentials.certificate);
  if (!certificate) return tl::unexpected(certificate.error());
  const auto key = Read(credentials.key);
  if (!key) return tl::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return InvalidArgument("a client certificate and its key must be given together");
  }
  options.pem_root_certs = *authority;
  options.pem_cert_chain = *certificate;
  options.pem_private_key = *key;
  return grpc::SslCredentials(options);
}

tl::expected<std::string, Error> ReadAuthorization(const std::string& token_file) {
  auto token = Read(token_file);
  if (!token) return token;
  token->erase(token->find_last_not_of(" \t\r\n") + 1);
  if (token->empty() || token->find_first_of(" \t\r\n") != std::string::npos) {
    return InvalidArgument(token_file + ": must hold exactly one token");
  }
  return "Bearer " + *token;
}

}  // namespace

tl::expected<Channel, Error> MakeChannel(const std::string& address,
                                         const Credentials& credentials) {
  const auto made = MakeCredentials(credentials);
  if (!made) return tl::unexpected(made.error());
  Channel channel;
  if (!credentials.token_file.empty()) {
    const bool encrypted =
        credentials.tls || !credentials.server_ca.empty() || !credentials.certificate.empty();
    if (!encrypted && !IsLocal(address)) {
      return InvalidArgument("the token would be sent unencrypted to " + address + "; use TLS");
    }
    const auto authorization = ReadAuthorization(credentials.token_file);
    if (!authorization) return tl::unexpected(authorization.error());
    channel.authorization = *authorization;
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A server that is starting is found soon; gRPC's default first back-off is a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeout_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients do not share connections, since their credentials may differ.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!credentials.server_name.empty()) {
    arguments.SetSslTargetNameOverride(credentials.server_name);
  }
  channel.channel = grpc::CreateCustomChannel(address, *made, arguments);
  return channel;
}

}  // namespace sap::client
