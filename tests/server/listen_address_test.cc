#include "server/listen_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

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

// A bracket that is not closed makes no address of the loopback.
TEST(ListenAddressTest, AHalfOpenBracketIsNotLocal) { EXPECT_FALSE(IsLocal("[::1:50051")); }

TEST(ListenAddressTest, AddressesWithoutAPortAreRefused) {
  for (const char* address : {"", "host", ":1", "host:", "host:65536", "host:100000", "host:-1",
                              "host:1x", "[::1]", "unix:"}) {
    EXPECT_NE(CheckAddress(address), "") << address;
  }
}

// So that a second server says so in one line, before gRPC tries to bind.
TEST(ListenAddressTest, APortThatIsListenedOnIsTaken) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), length), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length), 0);
  const std::string port = std::to_string(ntohs(name.sin_port));
  EXPECT_TRUE(HasListener("127.0.0.1:" + port));
  EXPECT_TRUE(HasListener("localhost:" + port));
  EXPECT_FALSE(HasListener("127.0.0.1:0"));
  EXPECT_FALSE(HasListener("no-such-host.invalid:" + port));
  close(fd);
  EXPECT_FALSE(HasListener("127.0.0.1:" + port));
}

TEST(ListenAddressTest, ThePortThatWasTakenReplacesTheOneAskedFor) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 1234), "127.0.0.1:1234");
  EXPECT_EQ(WithPort("[::1]:0", 1234), "[::1]:1234");
  EXPECT_EQ(WithPort("unix:/tmp/s:0", 1234), "unix:/tmp/s:0");
}

}  // namespace
}  // namespace sap
