#include "client/cpp/transport/channel.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <utility>

#include "client/cpp/files/message_file.h"
#include "client/cpp/transport/event_loop.h"
#include "solver/parallel/forked_threads.h"
#include "solver/parallel/signals_blocked.h"

namespace sap::client {
namespace {

// After a server has vanished without closing the connection, calls fail within the sum of these.
constexpr int kKeepalive_ms = 20'000;
constexpr int kKeepaliveTimeout_ms = 10'000;

// gRPC writes lines of its own about each connection that fails to standard error; errors say what
// they mean. Programs that use gRPC as well, or ask for more of its log (GRPC_VERBOSITY=info), keep
// them.
void SilenceGrpc() {
  static const bool silenced = [] {
    gpr_log_verbosity_init();
    if (grpc_is_initialized() != 0 || gpr_should_log(GPR_LOG_SEVERITY_INFO) != 0) return false;
    gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  static_cast<void>(silenced);
}

tl::unexpected<Error> InvalidArgument(const std::string& message, const std::string& field) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, message, field});
}

// PEM text, as such or in the file of that path.
tl::expected<std::string, Error> ReadPem(const std::string& text_or_path) {
  constexpr const char* kBegin = "-----BEGIN";
  if (text_or_path.empty() || text_or_path.starts_with(kBegin)) return text_or_path;
  auto text = ReadFile(text_or_path);
  // gRPC would take the CAs of the system in place of an empty file.
  if (text && text->find(kBegin) == std::string::npos) {
    return InvalidArgument(text_or_path + ": holds no PEM text", "");
  }
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
  const auto authority = ReadPem(credentials.server_ca);
  if (!authority) return tl::unexpected(authority.error());
  const auto certificate = ReadPem(credentials.certificate);
  if (!certificate) return tl::unexpected(certificate.error());
  const auto key = ReadPem(credentials.key);
  if (!key) return tl::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return InvalidArgument("a client certificate and its key must be given together",
                           "credentials.certificate");
  }
  options.pem_root_certs = *authority;
  options.pem_cert_chain = *certificate;
  options.pem_private_key = *key;
  return grpc::SslCredentials(options);
}

// Each call goes to the next server that says it serves. A server that drains thus gets no new call
// or stream; those that it has stay.
constexpr const char* kBalanced =
    R"({"loadBalancingConfig": [{"round_robin": {}}],)"
    R"( "healthCheckConfig": {"serviceName": "sap.v1.SolverService"}})";

grpc::ChannelArguments MakeArguments(const Address& address, const Credentials& credentials,
                                     ServerChoice choice) {
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
  if (address.is_balanced() && choice == ServerChoice::kHealthy) {
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

Status CheckFork(int made_in) {
  static const int first = ForkGeneration();
  if (ForkGeneration() == (made_in < 0 ? first : made_in)) return {};
  return tl::unexpected(
      Error{ErrorCode::kFailedPrecondition,
            "this process was forked from one that had a client of servers, whose connections and "
            "threads it does not have; start processes by spawn, "
            "or connect in the child alone",
            "", "FORKED"});
}

tl::expected<Channel, Error> MakeChannel(const Address& address, const Credentials& credentials,
                                         ServerChoice choice) {
  if (Status allowed = CheckFork(); !allowed) return tl::unexpected(allowed.error());
  const SignalsBlocked signals_blocked;
  SilenceGrpc();
  const bool encrypted = IsEncrypted(credentials);
  if (encrypted && address.kind == Address::Kind::kList && address.host.empty() &&
      credentials.server_name.empty()) {
    return InvalidArgument("credentials.server_name is needed, the name in the certificates of " +
                               address.text + ", which are several hosts",
                           "credentials.server_name");
  }
  const auto made = MakeCredentials(credentials);
  if (!made) return tl::unexpected(made.error());
  Channel channel;
  channel.encrypted = encrypted;
  const bool has_token = !credentials.token.empty() || !credentials.token_file.empty();
  if (has_token && !encrypted && !address.is_local) {
    return InvalidArgument("the token would be sent unencrypted to " + address.text + "; use TLS",
                           "credentials.token");
  }
  auto authorization = Authorization::Make(credentials);
  if (!authorization) return tl::unexpected(authorization.error());
  channel.authorization = std::move(*authorization);
  const auto target = ResolveTarget(address);
  if (!target) return tl::unexpected(target.error());
  channel.channel =
      grpc::CreateCustomChannel(*target, *made, MakeArguments(address, credentials, choice));
  return channel;
}

}  // namespace sap::client
