// sap-server as a process of its own, with two threads, on a port that it chooses.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace sap::test {

class ServerProcess {
 public:
  explicit ServerProcess(const std::vector<std::string>& flags = {})
      : process_(Command(flags)),
        address_(process_.WaitForLine("listening on ", std::chrono::seconds(300))) {
    EXPECT_NE(address_, "");
  }
  const std::string& address() const { return address_; }
  std::string port() const { return address_.substr(address_.rfind(':') + 1); }
  void Signal(int signal) const { process_.Signal(signal); }

 private:
  static std::vector<std::string> Command(const std::vector<std::string>& flags) {
    std::vector<std::string> command{SAP_SERVER_BINARY, "--listen", "127.0.0.1:0", "--threads",
                                     "2"};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }

  ChildProcess process_;
  std::string address_;
};

}  // namespace sap::test
