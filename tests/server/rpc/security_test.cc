// Authentication and transport limits: TLS, client certificates, bearer tokens, header sizes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "server/auth/tls_credentials.h"
#include "server/rpc/grpc_server.h"
#include "tests/support/await.h"
#include "tests/support/certificates.h"
#include "tests/support/child_process.h"
#include "tests/support/generic_call.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using client::Client;
using client::ConnectOptions;
using client::ErrorCode;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "0123456789abcdef-secret";

class SecurityTest : public testing::Test {
 protected:
  SecurityTest() {
    config_.listen = "127.0.0.1:0";
    config_.threads = 2;
    config_.io_threads = 2;
  }

  void UseTls(const CertificateFiles& files) {
    config_.security.tls.certificate = files.certificate;
    config_.security.tls.key = files.key;
  }

  // Replaces the token file.
  void WriteTokens(const std::string& text) {
    std::ofstream(directory_ / "next") << text;
    std::filesystem::rename(directory_ / "next", directory_ / "tokens");
  }

  void UseTokens(const std::string& text = "alice " + std::string(kToken) + "\n") {
    WriteTokens(text);
    auto tokens = BearerTokens::Open((directory_ / "tokens").string(), [](const std::string&) {},
                                     config_.admission.client);
    ASSERT_TRUE(tokens.has_value()) << tokens.error();
    tokens_ = std::move(*tokens);
  }

  void Start() {
    handler_ = std::make_unique<RequestHandler>(config_);
    auto server = GrpcServer::Start(config_, handler_.get(), tokens_.get());
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
  }

  std::string StartError() {
    RequestHandler handler(config_);
    const auto server = GrpcServer::Start(config_, &handler);
    return server ? "none" : server.error();
  }

  ConnectOptions Trusting(const std::string& authority,
                          std::chrono::milliseconds timeout = kLong) const {
    ConnectOptions options;
    options.connect_timeout = timeout;
    options.credentials.server_ca = authority;
    return options;
  }

  // Whether such a client gets an answer.
  bool Serves(const ConnectOptions& options) const {
    auto client = Client::Connect(server_->address(), options);
    return client.has_value() && client->Info().has_value();
  }

  client::Error ErrorOf(const ConnectOptions& options) const {
    auto client = Client::Connect(server_->address(), options);
    if (!client) return client.error();
    const auto info = client->Info();
    return info ? client::Error{} : info.error();
  }

  std::string WriteToken(const std::string& token) const {
    const std::string path = (directory_ / "token").string();
    std::ofstream(path) << token << "\n";
    return path;
  }

  TemporaryDirectory directory_;
  ServerConfig config_;
  std::unique_ptr<BearerTokens> tokens_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;
};

// For those that are not served.
constexpr std::chrono::milliseconds kShort{700};

TEST_F(SecurityTest, TlsServesThoseWhoTrustTheAuthorityAndNobodyElse) {
  const CertificateAuthority authority(directory_ / "", "authority");
  const CertificateAuthority other(directory_ / "", "other");
  UseTls(authority.Issue("server"));
  Start();
  EXPECT_TRUE(Serves(Trusting(authority.certificate())));
  EXPECT_FALSE(Serves(Trusting(other.certificate(), kShort)));
  EXPECT_FALSE(Serves({.connect_timeout = kShort}));
}

TEST_F(SecurityTest, MutualTlsAsksForACertificateAndNamesTheClientByIt) {
  const CertificateAuthority authority(directory_ / "", "authority");
  const CertificateAuthority other(directory_ / "", "other");
  UseTls(authority.Issue("server"));
  config_.security.tls.client_ca = authority.certificate();
  config_.admission.client.max_calls = 1;
  Start();
  EXPECT_FALSE(Serves(Trusting(authority.certificate(), kShort)));

  const auto with = [&](const CertificateFiles& files, std::chrono::milliseconds timeout) {
    ConnectOptions options = Trusting(authority.certificate(), timeout);
    options.credentials.certificate = files.certificate;
    options.credentials.key = files.key;
    return options;
  };
  EXPECT_FALSE(Serves(with(other.Issue("stranger"), kShort)));
  EXPECT_TRUE(Serves(with(authority.Issue("robot-7"), kLong)));

  // While the name's only call is held, a client of that name has none left.
  const auto account = handler_->admission().AccountOf("certificate:robot-7");
  ASSERT_TRUE(handler_->admission().Admit(account.get(), {}).has_value());
  const auto solve = [&](const CertificateFiles& files) {
    auto client = Client::Connect(server_->address(), with(files, kLong));
    return client->Solve(*client::FromMessage(MixedProblem()));
  };
  const auto refused =
      solve({(directory_ / "robot-7.crt").string(), (directory_ / "robot-7.key").string()});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().reason, "CLIENT_CALLS");
  EXPECT_GT(refused.error().retry_after.count(), 0);
  EXPECT_TRUE(solve(authority.Issue("robot-8")).has_value());
  handler_->admission().Release(account.get(), {});
}

// The certificate is replaced by one of another authority: within seconds new clients see it, and
// one that was connected goes on.
TEST_F(SecurityTest, ACertificateIsRotatedWithoutARestart) {
  const CertificateAuthority before(directory_ / "", "before");
  const CertificateAuthority after(directory_ / "", "after");
  std::filesystem::create_directory(directory_ / "old");
  std::filesystem::create_directory(directory_ / "new");
  const auto link = directory_ / "current";
  const auto place = [&](const CertificateFiles& files, const std::string& where) {
    std::filesystem::rename(files.certificate, directory_ / where / "server.crt");
    std::filesystem::rename(files.key, directory_ / where / "server.key");
  };
  place(before.Issue("server"), "old");
  place(after.Issue("server"), "new");
  std::filesystem::create_directory_symlink(directory_ / "old", link);
  UseTls({(link / "server.crt").string(), (link / "server.key").string()});
  Start();
  auto connected = Client::Connect(server_->address(), Trusting(before.certificate()));
  ASSERT_TRUE(connected.has_value());
  ASSERT_TRUE(connected->Info().has_value());

  std::filesystem::create_directory_symlink(directory_ / "new", directory_ / "next");
  std::filesystem::rename(directory_ / "next", link);
  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(connected->Info().has_value());
    return Serves(Trusting(after.certificate(), std::chrono::seconds(5)));
  }));
  EXPECT_FALSE(Serves(Trusting(before.certificate(), kShort)));
  EXPECT_TRUE(connected->Info().has_value());
}

TEST_F(SecurityTest, AnExpiredCertificateConvincesNobody) {
  const CertificateAuthority authority(directory_ / "", "authority");
  const CertificateFiles expired = authority.Issue("server", -1);
  UseTls(expired);
  Start();
  EXPECT_FALSE(Serves(Trusting(authority.certificate(), kShort)));
  const auto expiry = CertificateExpiry(expired.certificate);
  ASSERT_TRUE(expiry.has_value()) << expiry.error();
  EXPECT_LT(*expiry, std::chrono::system_clock::now());
}

TEST_F(SecurityTest, FilesThatCannotServeAreRefusedAtTheStart) {
  const CertificateAuthority authority(directory_ / "", "authority");
  const CertificateFiles one = authority.Issue("one");
  const CertificateFiles two = authority.Issue("two");
  UseTls({one.certificate, two.key});
  EXPECT_THAT(StartError(), HasSubstr("does not belong to the certificate"));
  UseTls({one.key, one.key});
  EXPECT_THAT(StartError(), HasSubstr("contains no certificate"));
  UseTls({one.certificate, one.certificate});
  EXPECT_THAT(StartError(), HasSubstr("contains no unencrypted private key"));
  UseTls({(directory_ / "absent").string(), one.key});
  EXPECT_THAT(StartError(), HasSubstr("No such file"));
}

TEST_F(SecurityTest, EveryCallNeedsATokenButForHealth) {
  UseTokens();
  Start();
  ConnectOptions options{.connect_timeout = kLong};
  options.credentials.token_file = WriteToken(kToken);
  EXPECT_TRUE(Serves(options));
  auto known = Client::Connect(server_->address(), options);
  ASSERT_TRUE(known.has_value());
  const client::Problem problem = *client::FromMessage(MixedProblem());
  EXPECT_TRUE(known->Solve(problem).has_value());
  EXPECT_TRUE(known->OpenSession().has_value());

  for (const bool wrong : {false, true}) {
    if (wrong) options.credentials.token_file = WriteToken("another-token-of-that-length");
    if (!wrong) options.credentials.token_file.clear();
    auto unknown = Client::Connect(server_->address(), options);
    ASSERT_TRUE(unknown.has_value());
    const auto code = [](const auto& outcome) {
      return outcome ? ErrorCode::kInternal : outcome.error().code;
    };
    EXPECT_EQ(code(unknown->Info()), ErrorCode::kUnauthenticated);
    EXPECT_EQ(code(unknown->Solve(problem)), ErrorCode::kUnauthenticated);
    EXPECT_EQ(code(unknown->SolveBatch({&problem, 1})[0]), ErrorCode::kUnauthenticated);
    EXPECT_EQ(code(unknown->StreamBatch({&problem, 1}, {}, [](int, const auto&) {})),
              ErrorCode::kUnauthenticated);
    EXPECT_EQ(code(unknown->OpenSession()), ErrorCode::kUnauthenticated);
    EXPECT_TRUE(unknown->Health().value());
  }
  EXPECT_EQ(handler_->num_sessions(), 0);
}

// Nobody calls meanwhile: the file must be looked at without.
TEST_F(SecurityTest, ARevokedTokenEndsTheSessionsOpenedWithIt) {
  UseTokens();
  Start();
  const auto account = handler_->admission().AccountOf("token:alice");
  ConnectOptions options{.connect_timeout = kLong};
  options.credentials.token_file = WriteToken(kToken);
  auto client = Client::Connect(server_->address(), options);
  ASSERT_TRUE(client.has_value());
  auto session = client->OpenSession();
  ASSERT_TRUE(session.has_value()) << session.error().message;
  const client::Problem problem = *client::FromMessage(MixedProblem());
  ASSERT_TRUE(session->Step(problem).has_value());

  // A second token of the same client, and other limits, end nothing.
  const std::string second = "alice another-token-of-that-length calls=3\n";
  WriteTokens(second + "alice " + kToken + " calls=3\n");
  ASSERT_TRUE(Await([&] { return account->entitlements().max_calls == 3; }));
  ASSERT_TRUE(session->Step(problem).has_value());

  WriteTokens(second);
  EXPECT_TRUE(Await([&] { return handler_->num_sessions() == 0; }));
  const auto after = session->Step(problem);
  ASSERT_FALSE(after.has_value());
  EXPECT_EQ(after.error().code, ErrorCode::kUnauthenticated);
}

TEST_F(SecurityTest, AClientIsRefusedOverTheRateOfItsLine) {
  UseTokens("alice " + std::string(kToken) + " rate=0.001\n");
  Start();
  ConnectOptions options{.connect_timeout = kLong};
  options.credentials.token_file = WriteToken(kToken);
  auto client = Client::Connect(server_->address(), options);
  ASSERT_TRUE(client.has_value());
  const client::Problem problem = *client::FromMessage(MixedProblem());
  EXPECT_TRUE(client->Solve(problem).has_value());
  const auto refused = client->Solve(problem);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, "CLIENT_RATE");
  const auto session = client->OpenSession();
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().reason, "CLIENT_RATE");
  const auto info = client->Info();
  ASSERT_FALSE(info.has_value());
  EXPECT_EQ(info.error().reason, "CLIENT_RATE");
}

// A call with these headers.
grpc::Status InfoWith(const std::string& address,
                      const std::vector<std::pair<std::string, std::string>>& headers) {
  const auto stub =
      v1::SolverService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLong);
  for (const auto& [name, value] : headers) context.AddMetadata(name, value);
  v1::GetServerInfoResponse response;
  return stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &response);
}

// Each would be a look-up, and HPACK makes many of them cheap to send.
TEST_F(SecurityTest, ACallHasOneToken) {
  UseTokens();
  Start();
  const std::pair<std::string, std::string> token{"authorization", "Bearer " + std::string(kToken)};
  const std::pair<std::string, std::string> wrong{"authorization", "Bearer 0123456789abcdef"};
  EXPECT_TRUE(InfoWith(server_->address(), {token}).ok());
  for (const auto& headers : {std::vector{token, wrong}, {wrong, token}, {token, token}, {wrong}}) {
    EXPECT_EQ(InfoWith(server_->address(), headers).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
  }
}

// Whatever ended two servers is not given to a third one, whoever calls.
TEST_F(SecurityTest, AThirdAttemptIsRefused) {
  Start();
  for (const std::string attempt : {"1", "2"}) {
    EXPECT_TRUE(InfoWith(server_->address(), {{"sap-attempt", attempt}}).ok());
  }
  for (const std::string attempt : {"3", "10", "many"}) {
    const grpc::Status status = InfoWith(server_->address(), {{"sap-attempt", attempt}});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("lost with two servers"));
  }
}

// Their rejections are delayed, here by most of a second, and cut off by the end of the server.
TEST_F(SecurityTest, ADrainDoesNotWaitForStrangers) {
  config_.threads = 1;
  UseTokens();
  Start();
  constexpr int kCalls = 600;
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  struct Call {
    grpc::ClientContext context;
    v1::SolveResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::SolveResponse>> reader;
  };
  std::vector<Call> calls(kCalls);
  grpc::CompletionQueue queue;
  for (Call& call : calls) {
    call.reader = stub->AsyncSolve(&call.context, {}, &queue);
    call.reader->Finish(&call.response, &call.status, &call);
  }
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));  // the first rejection
  server_->Drain(kLong);
  for (int i = 1; i < kCalls; ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  const auto cut_off = std::ranges::count_if(calls, [](const Call& call) {
    return call.status.error_code() != grpc::StatusCode::UNAUTHENTICATED;
  });
  EXPECT_GT(cut_off, 0);
}

TEST_F(SecurityTest, TheClientKeepsItsTokenFromTheNetwork) {
  ConnectOptions options{.connect_timeout = kLong};
  options.credentials.token_file = WriteToken(kToken);
  const auto client = Client::Connect("192.0.2.1:50051", options);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(client.error().message, HasSubstr("unencrypted"));
  EXPECT_THAT(client.error().message, Not(HasSubstr(kToken)));
  options.credentials.token_file = WriteToken("two words");
  EXPECT_FALSE(Client::Connect("127.0.0.1:1", options).has_value());
}

// Larger headers than the limit are refused, and do no harm to other connections. (gRPC may close
// the one that they came on.)
TEST_F(SecurityTest, HeadersAreBounded) {
  config_.connection.max_header_bytes = 4096;
  Start();
  grpc::ChannelArguments own_connection;
  own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (const size_t bytes : {100, 60'000, 100}) {
    const auto stub = v1::SolverService::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), own_connection));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    context.AddMetadata("x-padding", std::string(bytes, 'x'));
    v1::GetServerInfoResponse response;
    const grpc::Status status = stub->GetServerInfo(&context, {}, &response);
    EXPECT_EQ(status.ok(), bytes == 100) << status.error_message();
    if (!status.ok()) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    }
  }
}

// gRPC's reflection service reads messages of any length from whoever calls.
TEST_F(SecurityTest, ReflectionIsNotOfferedToStrangers) {
  constexpr const char* kReflection =
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  Start();
  const auto reflect = [&] {
    return CallByName(grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()),
                      kReflection, "\x3a\x01*");
  };
  EXPECT_NE(reflect().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  server_.reset();
  UseTokens();
  Start();
  EXPECT_EQ(reflect().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace sap::test
