// A server with tokens, a log file and a metrics endpoint, alone or behind the proxy that ships,
// and what an attack costs it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/hostile/target.h"
#include "tests/e2e/proxy_process.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"

namespace sap::test::hostile {

enum class Front : uint8_t { kNone, kProxy };
enum class Identity : uint8_t { kToken, kAddress };  // of clients

class AttackedServer {
 public:
  AttackedServer(std::vector<std::string> flags, Front front, Identity identity = Identity::kToken);

  // The server as those see it who have the token of this client; of "": who have none.
  Target As(const std::string& client) const;

  // A connection of the client library, with the token of this client.
  client::Client Connect(const std::string& client) const;

  // Takes the tokens of all clients but this one out of the file.
  void RevokeAllBut(const std::string& client) const;

  // Ends it without a word.
  void Kill() const { server_.Signal(SIGKILL); }

  // From now on the peak of the memory is counted again.
  void ForgetPeak() const;
  double Memory_MB() const { return Status_MB("VmRSS:"); }
  double PeakMemory_MB() const { return Status_MB("VmHWM:"); }
  double Log_kB() const;

 private:
  static std::string TokenOf(const std::string& client);
  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  void WriteTokens(const std::vector<std::string>& clients) const;
  std::vector<std::string> Flags(std::vector<std::string> flags, Front front,
                                 Identity identity) const;
  double Status_MB(const std::string& name) const;

  TemporaryDirectory directory_;
  CertificateAuthority authority_;
  ServerProcess server_;
  std::string metrics_address_;
  std::unique_ptr<ProxyProcess> proxy_;
};

}  // namespace sap::test::hostile
