// The real sap-server in a process of its own, on a free port of the loopback or a Unix socket.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "tests/support/child_process.h"

namespace sap::test {

// Longer than any test here should take; ends a test that hangs.
inline constexpr std::chrono::seconds kPatience{300};

// Whether the proofs run at length: ctest sets this for the tests labelled full.
inline bool IsFullProof() { return std::getenv("SAP_FULL_PROOF") != nullptr; }

class ServerProcess {
 public:
  // The prefix is a command that runs the server, as in {"/usr/bin/env", "NAME=VALUE"}.
  explicit ServerProcess(std::vector<std::string> flags = {},
                         const std::vector<std::string>& prefix = {},
                         const std::string& program = SAP_SERVER_BINARY)
      : process_(Command(flags, prefix, program)) {
    address_ = process_.WaitForLine("listening on ", kPatience);
    EXPECT_NE(address_, "");
  }

  const std::string& address() const { return address_; }

  client::Client Connect() const {
    auto client = client::Client::Connect(address_, {.connect_timeout = kPatience});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  pid_t pid() const { return process_.pid(); }
  void Terminate() const { process_.Signal(SIGTERM); }
  void Signal(int signal) const { process_.Signal(signal); }

  ProcessResult Wait() { return process_.Wait(kPatience); }

 private:
  static std::vector<std::string> Command(std::vector<std::string> flags,
                                          const std::vector<std::string>& prefix,
                                          const std::string& program) {
    const auto set = [&flags](const std::string& flag, const std::string& value) {
      if (std::find(flags.begin(), flags.end(), flag) != flags.end()) return;
      flags.insert(flags.end(), {flag, value});
    };
    set("--listen", "127.0.0.1:0");
    set("--threads", "2");
    flags.insert(flags.begin(), program);
    flags.insert(flags.begin(), prefix.begin(), prefix.end());
    return flags;
  }

  ChildProcess process_;
  std::string address_;
};

}  // namespace sap::test
