// Addresses and credentials through the C interface: names, TLS, tokens, scenes on several servers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/client/c/c_objects.h"
#include "tests/client/c/pile.h"
#include "tests/client/c/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/child_process.h"

namespace sap::test {
namespace {

constexpr const char* kToken = "4f1c9a0b7d2e4c5f8a6b3d1e0f9c8b7a";

sap_connect_options Options() {
  sap_connect_options options{};
  options.struct_size = sizeof options;
  return options;
}

std::vector<double> SolvedBy(const Client& client, const sap_problem& problem,
                             const sap_call* call = nullptr) {
  const Answer answer;
  EXPECT_EQ(sap_solve(client.get(), &problem, nullptr, call, answer.get()), SAP_OK)
      << answer.error().message;
  const sap_solution* solution = answer.solution();
  if (solution == nullptr) return {};
  return {solution->velocity.data, solution->velocity.data + solution->velocity.length};
}

int32_t Health(const Client& client) {
  const Answer answer;
  return sap_info(client.get(), nullptr, answer.get());
}

TEST(RemoteAddressTest, TheServerOfANameAnswers) {
  const ServerProcess server;
  const Pile pile(3);
  const Client there("dns:///localhost:" + server.port());
  EXPECT_EQ(SolvedBy(there, pile.problem), SolvedBy(Client(1), pile.problem));
}

TEST(RemoteAddressTest, ASceneOnSeveralServersHasTheBitsOfOne) {
  const ServerProcess first, second;
  const Pile columns(16, /*in_columns=*/true);
  const Client there(first.address() + "," + second.address());
  const auto expected = SolvedBy(Client(1), columns.problem);
  for (const int servers : {int{SAP_SERVERS_OF_ADDRESS}, 2, 3}) {
    sap_call call{};
    call.struct_size = sizeof call;
    call.servers = servers;
    EXPECT_EQ(SolvedBy(there, columns.problem, &call), expected) << servers;
  }
}

class CredentialsTest : public testing::Test {
 protected:
  std::vector<std::string> Flags() const {
    std::ofstream(tokens_) << "client " << kToken << "\n";
    std::filesystem::permissions(tokens_, std::filesystem::perms::owner_read);
    return {"--tls-cert",      own_.certificate,         "--tls-key",    own_.key,
            "--tls-client-ca", authority_.certificate(), "--token-file", tokens_};
  }

  // All credentials that the server asks for.
  sap_connect_options All() const {
    sap_connect_options options = Options();
    options.server_ca_file = authority_.certificate().c_str();
    options.certificate_file = client_.certificate.c_str();
    options.key_file = client_.key.c_str();
    options.token = kToken;
    return options;
  }

  const TemporaryDirectory directory_;
  const CertificateAuthority authority_{directory_ / "", "authority"};
  const CertificateFiles own_ = authority_.Issue("sap.example");
  const CertificateFiles client_ = authority_.Issue("client");
  const std::string tokens_ = directory_ / "tokens";
  const ServerProcess server_{Flags()};
};

TEST_F(CredentialsTest, WhoHasThemIsAnswered) {
  const Pile pile(3);
  sap_connect_options options = All();
  const Client there(server_.address(), &options);
  EXPECT_EQ(SolvedBy(there, pile.problem), SolvedBy(Client(1), pile.problem));
  options.server_name = "sap.example";
  options.token = nullptr;
  std::ofstream(directory_ / "token") << kToken;
  const std::string token_file = directory_ / "token";
  options.token_file = token_file.c_str();
  EXPECT_EQ(Health(Client(server_.address(), &options)), SAP_OK);
}

TEST_F(CredentialsTest, WhoLacksOneIsRefused) {
  const double at_once = 0;
  sap_connect_options options = All();
  options.connect_timeout_s = options.reconnect_within_s = &at_once;
  options.token = nullptr;
  EXPECT_EQ(Health(Client(server_.address(), &options)), SAP_UNAUTHENTICATED);
  options.token = kToken;
  options.server_name = "other.example";
  EXPECT_EQ(Health(Client(server_.address(), &options)), SAP_UNAVAILABLE);
  options.server_name = nullptr;
  options.certificate_file = options.key_file = nullptr;
  EXPECT_EQ(Health(Client(server_.address(), &options)), SAP_UNAVAILABLE);
}

TEST_F(CredentialsTest, WhatIsMissingOrWouldBeSeenIsRefusedByName) {
  const Answer answer;
  sap_client* client = nullptr;
  sap_connect_options options = All();
  options.key_file = nullptr;
  EXPECT_EQ(sap_connect(server_.address().c_str(), &options, nullptr, &client, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "credentials.certificate");
  options = Options();
  options.token = kToken;
  EXPECT_EQ(sap_connect("10.0.0.1:1", &options, nullptr, &client, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "credentials.token");
  options.server_ca_file = "/nowhere.pem";
  EXPECT_EQ(sap_connect("10.0.0.1:1", &options, nullptr, &client, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(answer.error().message).find("/nowhere.pem"), std::string::npos);
}

}  // namespace
}  // namespace sap::test
