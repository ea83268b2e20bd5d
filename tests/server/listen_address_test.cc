#include "server/listen_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "tests/support/child_process.h"

namespace sap {
namespace {

TEST(ListenAddressTest, OnlyTheLoopbackAndUnixSocketsAreLocal) {
  for (const char* address : {"127.0.0.1:1", "127.3.2.1:1", "localhost:1", "[::1]:1", "unix:/s"}) {
    EXPECT_TRUE(IsLocal(address)) << address;
  }
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.evil.example:1", "host:1",
                              "localhost.example:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(IsLocal(address)) << address;
  }
}

// A bracket that is not closed makes no address of the loopback.
TEST(ListenAddressTest, AHalfOpenBracketIsNotLocal) { EXPECT_FALSE(IsLocal("[::1:50051")); }

constexpr const char* kTaken = "another server uses this address";

// A socket that listens on a free port of the IPv4 loopback.
class Listener {
 public:
  Listener() : fd_(*BindTcp("127.0.0.1:0")) {
    EXPECT_EQ(listen(fd_, 1), 0);
    sockaddr_in name{};
    socklen_t length = sizeof name;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length), 0);
    port_ = std::to_string(ntohs(name.sin_port));
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& port() const { return port_; }

 private:
  int fd_;
  std::string port_;
};

// So that a second server says so in one line, before gRPC tries to bind. A host that has other
// addresses besides, which are free, as localhost may have, is taken as well.
TEST(ListenAddressTest, APortThatIsListenedOnIsTaken) {
  std::string port;
  {
    const Listener listener;
    port = listener.port();
    for (const char* host : {"127.0.0.1:", "localhost:", "0.0.0.0:", "*:"}) {
      EXPECT_EQ(WhyNotListen(host + port), kTaken) << host;
    }
  }
  for (const char* host : {"127.0.0.1:", "localhost:", "0.0.0.0:", "*:"}) {
    EXPECT_EQ(WhyNotListen(host + port), "") << host;
  }
}

// A file that no process listens on is no server: one that was killed leaves its socket.
TEST(ListenAddressTest, AUnixSocketIsTakenWhileAProcessListensOnIt) {
  const test::TemporaryDirectory directory;
  const std::string path = (directory / "s").string();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(WhyNotListen("unix:" + path), "");
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_EQ(WhyNotListen("unix:" + path), kTaken);
  EXPECT_EQ(WhyNotListen("unix://" + path), kTaken);
  close(fd);
  EXPECT_EQ(WhyNotListen("unix:" + path), "");
}

TEST(ListenAddressTest, TheReasonIsThatOfTheSystem) {
  EXPECT_EQ(WhyNotListen("127.0.0.1:0"), "");
  EXPECT_EQ(WhyNotListen("192.0.2.1:0"), "Cannot assign requested address");
  EXPECT_NE(WhyNotListen("no-such-host.invalid:1"), "");
  EXPECT_EQ(WhyNotListen("unix:/no/such/folder/socket"), "No such file or directory");
  EXPECT_EQ(WhyNotListen("unix:/dev/null/socket"), "Not a directory");
  EXPECT_EQ(WhyNotListen("unix:/tmp/" + std::string(108, 's')), "File name too long");
  EXPECT_EQ(WhyNotListen("unix:relative"), "");
}

// The two forms that gRPC knows.
TEST(ListenAddressTest, ThePathOfAUnixSocketIsThatOfTheFile) {
  EXPECT_EQ(UnixPath("unix:/run/s"), "/run/s");
  EXPECT_EQ(UnixPath("unix:///run/s"), "/run/s");
  EXPECT_EQ(UnixPath("unix:s"), "s");
}

TEST(ListenAddressTest, ThePortThatWasTakenReplacesTheOneAskedFor) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 1234), "127.0.0.1:1234");
  EXPECT_EQ(WithPort("[::1]:0", 1234), "[::1]:1234");
  EXPECT_EQ(WithPort("unix:/tmp/s:0", 1234), "unix:/tmp/s:0");
}

}  // namespace
}  // namespace sap
