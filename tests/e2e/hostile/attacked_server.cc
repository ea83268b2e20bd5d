#include "tests/e2e/hostile/attacked_server.h"

#include <fstream>
#include <sstream>

#include "tests/e2e/hostile/neighbour.h"
#include "tests/e2e/server_log.h"

namespace sap::test::hostile {
namespace {

const std::vector<std::string> kClients{"neighbour", "attacker", "accomplice"};

}  // namespace

AttackedServer::AttackedServer(std::vector<std::string> flags, Front front, Identity identity)
    : authority_(directory_ / "", "authority"), server_(Flags(std::move(flags), front, identity)) {
  metrics_address_ = AddressIn(Path("log"), "metrics");
  if (front == Front::kProxy) {
    proxy_ = std::make_unique<ProxyProcess>(directory_ / "", authority_, directory_ / "socket");
  }
}

std::vector<std::string> AttackedServer::Flags(std::vector<std::string> flags, Front front,
                                               Identity identity) const {
  WriteTokens(kClients);
  for (const std::string& client : kClients) {
    std::ofstream(directory_ / (client + ".token")) << TokenOf(client) << "\n";
  }
  // As the unit file has it, threads that solve yield to those that receive.
  const std::vector<std::string> common{"--log-file",  Path("log"),     "--metrics-listen",
                                        "127.0.0.1:0", "--solver-nice", "10"};
  flags.insert(flags.end(), common.begin(), common.end());
  if (identity == Identity::kToken) {
    flags.insert(flags.end(), {"--token-file", Path("tokens")});
  }
  if (front == Front::kProxy) flags.insert(flags.end(), {"--listen", "unix:" + Path("socket")});
  return flags;
}

std::string AttackedServer::TokenOf(const std::string& client) {
  return client.empty() ? "" : client + "-token-0123456789";
}

void AttackedServer::WriteTokens(const std::vector<std::string>& clients) const {
  {
    std::ofstream file(directory_ / "new_tokens");
    for (const std::string& client : clients) file << client << " " << TokenOf(client) << "\n";
  }
  std::filesystem::rename(directory_ / "new_tokens", directory_ / "tokens");
}

void AttackedServer::RevokeAllBut(const std::string& client) const { WriteTokens({client}); }

Target AttackedServer::As(const std::string& client) const {
  Target target{.address = server_.address(),
                .server_ca = {},
                .metrics_address = metrics_address_,
                .token = TokenOf(client)};
  if (client == "attacker") target.accomplice_token = TokenOf("accomplice");
  target.token_file = Path(client + ".token");
  if (proxy_ != nullptr) {
    std::stringstream authority;
    authority << std::ifstream(authority_.certificate()).rdbuf();
    target.address = proxy_->address();
    target.server_ca = authority.str();
    target.server_ca_file = authority_.certificate();
  }
  return target;
}

client::Client AttackedServer::Connect(const std::string& client) const {
  const Target target = As(client);
  auto connected = client::Client::Connect(target.address, OptionsFor(target));
  EXPECT_TRUE(connected.has_value()) << connected.error().message;
  return std::move(*connected);
}

void AttackedServer::ForgetPeak() const {
  std::ofstream("/proc/" + std::to_string(server_.pid()) + "/clear_refs") << "5";
}

double AttackedServer::Status_MB(const std::string& name) const {
  std::ifstream status("/proc/" + std::to_string(server_.pid()) + "/status");
  double kB = 0;
  for (std::string word; status >> word;) {
    if (word == name) status >> kB;
  }
  return kB / 1024;
}

double AttackedServer::Log_kB() const {
  return static_cast<double>(std::filesystem::file_size(directory_ / "log")) / 1000;
}

}  // namespace sap::test::hostile
