// Three servers on addresses of the loopback with equal ports, as on three machines: TLS, tokens
// and probes as an installation has them. Each can be restarted on its address.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/connect_options.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/child_process.h"

namespace sap::test {

// A port that is free on an address of the loopback.
int FreePort(const std::string& host);

// How many problems a server has solved since its start, in calls and sessions, as its metrics say.
int ProblemsSolved(const std::string& metrics_address);

class Fleet {
 public:
  static constexpr int kServers = 3;

  // With the time for which a server announces its end, and further flags of sap-server.
  explicit Fleet(double lame_duck_s, const std::vector<std::string>& flags = {});

  std::string address(int server) const { return Host(server) + ":" + std::to_string(port_); }
  int ready_port() const { return ready_port_; }

  // For all of them and for balancers: files, and options that trust them.
  std::filesystem::path directory() const { return directory_ / ""; }
  const std::string& name() const { return name_; }
  const std::string& authority() const { return authority_.certificate(); }
  const CertificateFiles& certificate() const { return certificate_; }
  client::ConnectOptions Options() const;

  // Ends the server by the signal and starts another one on its address: this program.
  void Restart(int server, int signal, const std::string& program = SAP_SERVER_BINARY);

  int Solved(int server) const { return ProblemsSolved(ReadyAddress(server)); }

 private:
  static std::string Host(int server) { return "127.0.0." + std::to_string(11 + server); }
  std::string ReadyAddress(int server) const {
    return Host(server) + ":" + std::to_string(ready_port_);
  }
  std::unique_ptr<ServerProcess> Start(int server, const std::string& program) const;
  std::string Tokens() const;

  TemporaryDirectory directory_;
  std::string name_{"solver.example"};  // that of the files in deploy/
  CertificateAuthority authority_{directory_ / "", "authority"};
  CertificateFiles certificate_{authority_.Issue(name_)};
  int port_{FreePort(Host(0))};
  int ready_port_{FreePort(Host(0))};
  std::vector<std::string> flags_;
  std::array<std::unique_ptr<ServerProcess>, kServers> servers_;
};

}  // namespace sap::test
