#include "client/cpp/transport/channel.h"

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

bool IsEncrypted(const Credentials& credentials) {
  return credentials.tls || !credentials.server_ca.empty() || !credentials.certificate.empty() ||
         !credentials.key.empty();
}

tl::expected<std::shared_ptr<grpc::ChannelCredentials>, Error> MakeCredentials(
    const Credentials& credentials) {
  if (!IsEncrypted(credentials)) return grpc::InsecureChannelCredentials();
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

// Each call goes to the next server that says it serves. A server that drains thus gets no new call
// or stream; those that it has stay.
constexpr const char* kBalanced =
    R"({"loadBalancingConfig": [{"round_robin": {}}],)"
    R"( "healthCheckConfig": {"serviceName": "sap.v1.SolverService"}})";

grpc::ChannelArguments MakeArguments(const Address& address, const Credentials& credentials,
                                     Servers servers) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A server that is starting is found soon; gRPC's back-off goes from one second to two minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeout_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients do not share connections, since their credentials may differ.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (address.is_balanced() && servers == Servers::kHealthy) {
    arguments.SetServiceConfigJSON(kBalanced);
    // Where all servers of a name have moved, its new addresses are needed before a session gives
    // up; gRPC's default is 30 s.
    arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1'000);
  }
  const std::string& server_name =
      credentials.server_name.empty() ? address.host : credentials.server_name;
  const bool has_name = IsEncrypted(credentials) && !server_name.empty();
  if (has_name) arguments.SetSslTargetNameOverride(server_name);
  // The default would be the whole list, which is no name. With TLS, gRPC refuses calls, those of
  // its health checks too, whose authority is not in the certificate.
  if (address.kind == Address::Kind::kList) {
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY,
                        has_name ? server_name : address.servers.front());
  }
  return arguments;
}

}  // namespace

tl::expected<Channel, Error> MakeChannel(const Address& address, const Credentials& credentials,
                                         Servers servers) {
  const bool encrypted = IsEncrypted(credentials);
  if (encrypted && address.kind == Address::Kind::kList && address.host.empty() &&
      credentials.server_name.empty()) {
    return InvalidArgument("credentials.server_name is needed, the name in the certificates of " +
                           address.text + ", which are several hosts");
  }
  const auto made = MakeCredentials(credentials);
  if (!made) return tl::unexpected(made.error());
  Channel channel;
  if (!credentials.token_file.empty()) {
    if (!encrypted && !address.is_local) {
      return InvalidArgument("the token would be sent unencrypted to " + address.text +
                             "; use TLS");
    }
    const auto authorization = ReadAuthorization(credentials.token_file);
    if (!authorization) return tl::unexpected(authorization.error());
    channel.authorization = *authorization;
  }
  const auto target = ResolveTarget(address);
  if (!target) return tl::unexpected(target.error());
  channel.channel =
      grpc::CreateCustomChannel(*target, *made, MakeArguments(address, credentials, servers));
  return channel;
}

}  // namespace sap::client
