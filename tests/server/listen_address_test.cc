#include "server/listen_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
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

// A socket that listens on a free port of the loopback.
class Listener {
 public:
  explicit Listener(const std::string& address = "127.0.0.1:0") : fd_(*BindTcp(address)) {
    EXPECT_EQ(listen(fd_, 1), 0);
    sockaddr_in6 name{};  // as of IPv4, it has its port there too
    socklen_t length = sizeof name;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length), 0);
    port_ = std::to_string(ntohs(name.sin6_port));
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& port() const { return port_; }

 private:
  int fd_;
  std::string port_;
};

// A second server says so in one line, before gRPC tries to bind. A host that has other addresses
// besides, which are free, as localhost may have, is taken as well.
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

// All addresses are 0.0.0.0, which is free then, and [::]. A host without IPv6 has one loopback.
TEST(ListenAddressTest, APortOfTheIpv6LoopbackIsTakenForAllAddresses) {
  const Listener listener(WhyNotListen("[::1]:0").empty() ? "[::1]:0" : "127.0.0.1:0");
  EXPECT_EQ(WhyNotListen("*:" + listener.port()), kTaken);
}

// A socket by the name of a file.
class UnixSocket {
 public:
  explicit UnixSocket(const std::filesystem::path& path)
      : path_(path.string()), fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    name_.sun_family = AF_UNIX;
    path_.copy(name_.sun_path, sizeof name_.sun_path - 1);
  }
  ~UnixSocket() { close(fd_); }
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  void Bind() { ASSERT_EQ(bind(fd_, name(), sizeof name_), 0); }
  void Listen(int backlog) { ASSERT_EQ(listen(fd_, backlog), 0); }
  // 0, or why not.
  int Connect() { return connect(fd_, name(), sizeof name_) == 0 ? 0 : errno; }
  const std::string& path() const { return path_; }

 private:
  const sockaddr* name() const { return reinterpret_cast<const sockaddr*>(&name_); }

  const std::string path_;
  const int fd_;
  sockaddr_un name_{};
};

// A file that no process listens on is no server: one that was killed leaves its socket.
TEST(ListenAddressTest, AUnixSocketIsTakenWhileAProcessListensOnIt) {
  const test::TemporaryDirectory directory;
  std::string path;
  {
    UnixSocket server(directory / "s");
    path = server.path();
    server.Bind();
    EXPECT_EQ(WhyNotListen("unix:" + path), "");
    server.Listen(1);
    EXPECT_EQ(WhyNotListen("unix:" + path), kTaken);
    EXPECT_EQ(WhyNotListen("unix://" + path), kTaken);
  }
  EXPECT_EQ(WhyNotListen("unix:" + path), "");
}

TEST(ListenAddressTest, AUnixSocketThatAcceptsNobodyNowIsTaken) {
  const test::TemporaryDirectory directory;
  UnixSocket server(directory / "s");
  server.Bind();
  server.Listen(0);
  UnixSocket first(server.path());
  ASSERT_EQ(first.Connect(), 0);
  UnixSocket second(server.path());
  ASSERT_EQ(second.Connect(), EAGAIN);
  EXPECT_EQ(WhyNotListen("unix:" + server.path()), kTaken);
}

// The rights of nobody where this process is root, for whom everything is allowed.
TEST(ListenAddressTest, AUnixSocketOfAnotherUserIsTaken) {
  const test::TemporaryDirectory directory;
  UnixSocket server(directory / "s");
  server.Bind();
  server.Listen(1);
  std::filesystem::permissions(directory / "", std::filesystem::perms::all);
  std::filesystem::permissions(server.path(), std::filesystem::perms::none);
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);
  UnixSocket client(server.path());
  EXPECT_EQ(client.Connect(), EACCES);
  EXPECT_EQ(WhyNotListen("unix:" + server.path()), kTaken);
  ASSERT_EQ(seteuid(user), 0);
}

// From the claim on, before anybody listens; a lock that a killed process has left is nobody's.
TEST(ListenAddressTest, AUnixSocketIsClaimedByOneServer) {
  const test::TemporaryDirectory directory;
  const std::string address = "unix:" + (directory / "s").string();
  for (int i = 0; i < 2; ++i) {
    const auto claim = AddressClaim::Make(address);
    ASSERT_TRUE(claim.has_value()) << claim.error();
    const auto second = AddressClaim::Make("unix://" + (directory / "s").string());
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error(), kTaken);
    EXPECT_TRUE(AddressClaim::Make("unix:" + (directory / "t").string()).has_value());
  }
  UnixSocket server(directory / "s");
  server.Bind();
  server.Listen(1);
  EXPECT_FALSE(AddressClaim::Make(address).has_value()) << "a server of before had no lock";
}

TEST(ListenAddressTest, APlaceThatCannotBeClaimedIsLeftAsItIs) {
  const test::TemporaryDirectory directory;
  const std::string path = (directory / "s").string();
  std::filesystem::create_symlink(directory / "other", path + ".lock");
  const auto claim = AddressClaim::Make("unix:" + path);
  ASSERT_FALSE(claim.has_value());
  EXPECT_EQ(claim.error(), "cannot lock " + path + ".lock: Too many levels of symbolic links");
  EXPECT_FALSE(std::filesystem::exists(directory / "other"));
  EXPECT_EQ(AddressClaim::Make("unix:/no/such/folder/s").error(), "No such file or directory");
}

TEST(ListenAddressTest, AProcessThatMayOpenNoMoreFilesIsToldSo) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string reason = WhyNotListen("127.0.0.1:0");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(reason, "Too many open files");
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
