// Credentials and the addresses that they may be used with.
#include "client/cpp/transport/channel.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/child_process.h"

namespace sap::client::channel {
namespace {

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() { std::ofstream(directory_ / "token") << "0123456789abcdef-secret\n"; }

  Credentials WithToken() const {
    Credentials credentials;
    credentials.token_file = (directory_ / "token").string();
    return credentials;
  }

  // The error, or nothing.
  static std::string Refusal(const std::string& address, const Credentials& credentials) {
    const auto channel = MakeChannel(*ParseAddress(address), credentials);
    if (channel) return "";
    EXPECT_EQ(channel.error().code, ErrorCode::kInvalidArgument) << address;
    return channel.error().message;
  }

  test::TemporaryDirectory directory_;
};

// Whichever of them a call goes to.
TEST_F(ChannelTest, ATokenIsNotSentUnencryptedUnlessEveryServerIsLocal) {
  for (const char* address : {"127.0.0.1:1,127.0.0.1:2", "[::1]:1,127.0.0.1:2",
                              "localhost:1,127.0.0.1:2", "dns:///localhost:1"}) {
    EXPECT_EQ(Refusal(address, WithToken()), "") << address;
  }
  for (const char* address :
       {"127.0.0.1:1,10.0.0.1:2", "10.0.0.1:1,127.0.0.1:2", "dns:///solvers:1",
        "dns://10.0.0.53/localhost:1", "xds:///solvers"}) {
    EXPECT_EQ(Refusal(address, WithToken()),
              "the token would be sent unencrypted to " + std::string(address) + "; use TLS");
  }
}

TEST_F(ChannelTest, ATokenGoesAnywhereEncrypted) {
  Credentials credentials = WithToken();
  credentials.tls = true;
  credentials.server_name = "solvers";
  for (const char* address : {"10.0.0.1:1", "10.0.0.1:1,10.0.0.2:2", "dns:///solvers:1"}) {
    EXPECT_EQ(Refusal(address, credentials), "") << address;
  }
}

TEST_F(ChannelTest, WithTlsTheServersOfAListHaveOneName) {
  Credentials credentials;
  credentials.tls = true;
  EXPECT_EQ(Refusal("10.0.0.1:1,10.0.0.1:2", credentials), "");
  EXPECT_EQ(Refusal("10.0.0.1:1,10.0.0.2:1", credentials),
            "credentials.server_name is needed, the name in the certificates of "
            "10.0.0.1:1,10.0.0.2:1, which are several hosts");
  credentials.server_name = "solvers.example";
  EXPECT_EQ(Refusal("10.0.0.1:1,10.0.0.2:1", credentials), "");
}

// An empty file would otherwise stand for no file: the CAs of the system, or no certificate.
TEST_F(ChannelTest, AFileWithoutACredentialIsRefusedByItsName) {
  const std::string folder = directory_ / "";
  const std::string empty = directory_ / "empty";
  std::ofstream(empty).close();
  for (std::string Credentials::*of : {&Credentials::server_ca, &Credentials::token_file}) {
    Credentials credentials;
    credentials.*of = folder;
    EXPECT_EQ(Refusal("127.0.0.1:1", credentials), folder + ": cannot read: Is a directory");
    credentials.*of = empty;
    EXPECT_EQ(Refusal("127.0.0.1:1", credentials),
              empty + (of == &Credentials::server_ca ? ": holds no PEM text"
                                                     : ": must hold exactly one token"));
  }
}

}  // namespace
}  // namespace sap::client::channel
