#include "tests/e2e/fleet/fleet.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/raw_socket.h"

namespace sap::test {

int FreePort(const std::string& host) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  inet_pton(AF_INET, host.c_str(), &name.sin_addr);
  socklen_t length = sizeof name;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length), 0);
  close(fd);
  return ntohs(name.sin_port);
}

int ProblemsSolved(const std::string& metrics_address) {
  const std::string name = "sap_problems_total{outcome=\"solved\"} ";
  const std::string text = HttpGet(metrics_address, "/metrics");
  const size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
}

Fleet::Fleet(double lame_duck_s, const std::vector<std::string>& flags)
    : flags_({"--threads", "1", "--lame-duck-s", std::to_string(lame_duck_s), "--tls-cert",
              certificate_.certificate, "--tls-key", certificate_.key, "--token-file", Tokens()}) {
  flags_.insert(flags_.end(), flags.begin(), flags.end());
  for (int server = 0; server < kServers; ++server)
    servers_[server] = Start(server, SAP_SERVER_BINARY);
}

client::ConnectOptions Fleet::Options() const {
  client::ConnectOptions options;
  options.connect_timeout = kPatience;
  options.credentials.server_ca = authority();
  options.credentials.server_name = name_;
  options.credentials.token_file = (directory_ / "token").string();
  return options;
}

void Fleet::Restart(int server, int signal, const std::string& program) {
  servers_[server]->Signal(signal);
  const ProcessResult result = servers_[server]->Wait();
  if (signal == SIGTERM) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  servers_[server] = Start(server, program);
}

std::unique_ptr<ServerProcess> Fleet::Start(int server, const std::string& program) const {
  std::vector<std::string> flags{"--listen", address(server), "--metrics-listen",
                                 ReadyAddress(server)};
  flags.insert(flags.end(), flags_.begin(), flags_.end());
  return std::make_unique<ServerProcess>(flags, std::vector<std::string>(), program);
}

std::string Fleet::Tokens() const {
  std::ofstream(directory_ / "tokens") << "alice a-token-0123456789\n";
  std::ofstream(directory_ / "token") << "a-token-0123456789\n";
  return (directory_ / "tokens").string();
}

}  // namespace sap::test
