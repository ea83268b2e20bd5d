#include "client/cpp/split/server_count.h"

#include <gtest/gtest.h>

#include "tests/support/child_process.h"

namespace sap::client {
namespace {

TEST(ServerCountTest, AListHasAsManyAsItNames) {
  EXPECT_EQ(CountServers("localhost:50051"), 1);
  EXPECT_EQ(CountServers("a:1,b:2,[::1]:3"), 3);
}

// One, or one of each family, as this machine has it: a line for each kind of socket and address.
int AddressesOfLocalhost() {
  const auto list = test::RunProcess({"/usr/bin/getent", "-A", "ahosts", "localhost"}).out;
  int count = 0;
  for (size_t at = 0; (at = list.find("STREAM", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(ServerCountTest, ANameHasItsAddresses) {
  EXPECT_EQ(CountServers("dns:///127.0.0.1:50051"), 1);
  EXPECT_EQ(CountServers("dns:///localhost:50051"), AddressesOfLocalhost());
  EXPECT_EQ(CountServers("dns:///no-such-host.invalid:50051"), 1);
}

TEST(ServerCountTest, WhatIsBehindAProxyCannotBeSeen) {
  EXPECT_EQ(CountServers("unix:/run/sap,1.sock"), 1);
  EXPECT_EQ(CountServers("xds:///solvers"), 1);
}

}  // namespace
}  // namespace sap::client
