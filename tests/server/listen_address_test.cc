#include "server/listen_address.h"

#include <gtest/gtest.h>

namespace sap {
namespace {

TEST(ListenAddressTest, OnlyTheLoopbackAndUnixSocketsAreLocal) {
  for (const char* address : {"127.0.0.1:1", "127.3.2.1:1", "localhost:1", "[::1]:1", "unix:/s"}) {
    EXPECT_TRUE(IsLocal(address)) << address;
    EXPECT_EQ(CheckAddress(address), "");
  }
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.evil.example:1", "host:1",
                              "localhost.example:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(IsLocal(address)) << address;
    EXPECT_EQ(CheckAddress(address), "");
  }
}

}  // namespace
}  // namespace sap
