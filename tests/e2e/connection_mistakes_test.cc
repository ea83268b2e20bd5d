// Mistakes in addresses and TLS: one sentence of advice, and no line of gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/clients/tested_client.h"
#include "tests/e2e/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

class ConnectionMistakesTest : public testing::Test {
 protected:
  ConnectionMistakesTest() {
    const CertificateFiles server = authority_.Issue("solver.example");
    const std::vector<std::string> tls{"--tls-cert", server.certificate, "--tls-key", server.key};
    secure_ = std::make_unique<ServerProcess>(tls);
    std::vector<std::string> mutual = tls;
    mutual.insert(mutual.end(), {"--tls-client-ca", authority_.certificate()});
    mutual_ = std::make_unique<ServerProcess>(mutual);
  }

  // Returns the message of `sap-client info`.
  static void ExpectAdvice(const std::string& address, const std::vector<std::string>& flags,
                           const std::string& advice) {
    std::vector<std::string> command{SAP_CLIENT_BINARY, "info", "--server", address};
    command.insert(command.end(), flags.begin(), flags.end());
    const ProcessResult result = RunProcess(command, kPatience);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err,
              "sap-client: UNAVAILABLE: no server answers at " + address + "; " + advice + "\n");
  }

  TemporaryDirectory directory_;
  CertificateAuthority authority_{directory_ / "", "authority"};
  CertificateAuthority other_{directory_ / "", "other"};
  ServerProcess plain_;
  std::unique_ptr<ServerProcess> secure_;
  std::unique_ptr<ServerProcess> mutual_;
};

TEST_F(ConnectionMistakesTest, TheCommandSaysWhatToDo) {
  const std::vector<std::string> trusted{"--tls-ca", authority_.certificate()};
  ExpectAdvice(plain_.address(), trusted, "the server does not speak TLS: connect without it");
  ExpectAdvice(secure_->address(), {}, "the server closes connections without TLS: it may want it");
  ExpectAdvice(secure_->address(), {"--tls-ca", other_.certificate()},
               "the server's certificate is expired or of an authority that is not trusted: give "
               "that of its authority as server CA");
  ExpectAdvice(secure_->address(),
               {"--tls-ca", authority_.certificate(), "--tls-server-name", "elsewhere.example"},
               "the server's certificate is not for elsewhere.example: give a name that is in it "
               "as server name");
  ExpectAdvice(mutual_->address(), trusted,
               "the server closes the connection: it may want a certificate of the client that it "
               "trusts");
  ExpectAdvice("127.0.0.1:1", {}, "nothing listens there: Connection refused");
  ExpectAdvice("unix:" + (directory_ / "nobody").string(), {},
               "there is no such socket: No such file or directory");
}

TEST_F(ConnectionMistakesTest, CallsSayItInEveryLanguage) {
  client::ConnectOptions options{.connect_timeout = {}, .reconnect_within = {}};
  for (const Language language : Languages()) {
    const auto client = Connect(language, secure_->address(), options);
    ASSERT_TRUE(client.has_value()) << client.error().message;
    const Outcome outcome = (*client)->Solve(*client::FromMessage(MixedProblem()));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().message,
              "no server can be reached: the server closes connections without TLS: it may want it")
        << Name(language);
  }
}

// Neither address answers the calls of the other one; an error without a text would say nothing.
TEST_F(ConnectionMistakesTest, CallsToAnotherServiceAreToldSo) {
  const std::string admin = "unix:" + (directory_ / "admin").string();
  const ServerProcess server({"--admin-listen", admin});
  for (const Language language : Languages()) {
    const auto client = Connect(language, admin, {});
    ASSERT_TRUE(client.has_value()) << client.error().message;
    const Outcome outcome = (*client)->Solve(*client::FromMessage(MixedProblem()));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, client::ErrorCode::kUnimplemented);
    EXPECT_THAT(outcome.error().message, HasSubstr("this is the address of operators"));
  }
  const ProcessResult drain =
      RunProcess({SAP_CLIENT_BINARY, "admin", "--server", server.address(), "drain"}, kPatience);
  EXPECT_EQ(drain.exit_code, 2);
  EXPECT_EQ(drain.err, "sap-client: UNIMPLEMENTED: " + server.address() +
                           " has no such call: --server must be the address of the server's "
                           "--admin-listen\n");
}

}  // namespace
}  // namespace sap::test
