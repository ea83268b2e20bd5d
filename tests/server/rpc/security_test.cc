// Authentication and transport limits: TLS, client certificates, bearer tokens, header sizes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
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
using testing::ElementsAre;
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
    if (!config_.security.tls.certificate.empty()) {
      auto certificates = ServerCertificates::Open(config_.security.tls, Logger());
      ASSERT_TRUE(certificates.has_value()) << certificates.error();
      certificates_ = std::move(*certificates);
    }
    handler_ = std::make_unique<RequestHandler>(config_);
    auto server = GrpcServer::Start(config_, handler_.get(), tokens_.get(),
                                    CallObserver(nullptr, nullptr), certificates_.get());
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
  }

  std::string CertificateError() const {
    const auto certificates = ServerCertificates::Open(config_.security.tls, {});
    return certificates ? "none" : certificates.error();
  }

  // Lines about certificates come from a thread of their own.
  WatchedFiles::Log Logger() {
    return [this](const std::string& message) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(message);
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
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
  std::unique_ptr<ServerCertificates> certificates_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
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
  EXPECT_LT(certificates_->expiry(), std::chrono::system_clock::now());
  EXPECT_THAT(lines(), ElementsAre("the certificate in " + expired.certificate + " has expired"));
}

TEST_F(SecurityTest, FilesThatCannotServeAreRefusedAtTheStart) {
  const CertificateAuthority authority(directory_ / "", "authority");
  const CertificateFiles one = authority.Issue("one");
  const CertificateFiles two = authority.Issue("two");
  UseTls({one.certificate, two.key});
  EXPECT_THAT(CertificateError(), HasSubstr("does not belong to the certificate"));
  UseTls({one.key, one.key});
  EXPECT_THAT(CertificateError(), HasSubstr("contains no certificate"));
  UseTls({one.certificate, one.certificate});
  EXPECT_THAT(CertificateError(), HasSubstr("contains no unencrypted private key"));
  UseTls({(directory_ / "absent").string(), one.key});
  EXPECT_THAT(CertificateError(), HasSubstr("No such file"));
}

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Certificate, key and client CA of a server, each of which a test may spoil.
class CertificateFilesTest : public SecurityTest {
 protected:
  CertificateFilesTest() : authority_(directory_ / "", "authority") {
    UseTls(authority_.Issue("server"));
    config_.security.tls.client_ca = (directory_ / "clients.crt").string();
    // An intermediate and its authority, as far as OpenSSL can tell.
    chain_ = TextOf(config_.security.tls.certificate) + TextOf(authority_.certificate());
    key_ = TextOf(config_.security.tls.key);
    Restore();
  }

  // Writes the files in place, as cp does.
  void Restore() const {
    const TlsConfig& tls = config_.security.tls;
    std::filesystem::remove(tls.key);  // where it is a pipe, opening it would wait
    std::ofstream(tls.certificate) << chain_;
    std::ofstream(tls.key) << key_;
    std::ofstream(tls.client_ca) << TextOf(authority_.certificate());
  }

  bool ServesItsClients() {
    ConnectOptions options = Trusting(authority_.certificate());
    options.credentials.certificate = (directory_ / "robot.crt").string();
    options.credentials.key = (directory_ / "robot.key").string();
    if (!std::filesystem::exists(options.credentials.key)) authority_.Issue("robot");
    return Serves(options);
  }

  const CertificateAuthority authority_;
  std::string chain_, key_;
};

TEST_F(CertificateFilesTest, ASetIsUsedOnlyIfAllOfItCanBe) {
  const TlsConfig& tls = config_.security.tls;
  EXPECT_EQ(CertificateError(), "none");
  const auto error_with = [&](const std::string& path, const std::string& text) {
    Restore();
    std::ofstream(path) << text;
    return CertificateError();
  };
  const size_t first = TextOf(authority_.certificate()).size();
  const size_t second = chain_.size() - first;  // where the second certificate begins
  for (const std::string& text :
       {std::string(), std::string("hello"), chain_.substr(0, 300), key_}) {
    EXPECT_THAT(error_with(tls.certificate, text),
                HasSubstr(tls.certificate + " contains no certificate"));
  }
  // Cut off within the line that begins the second certificate, within it, and in its last line.
  for (const size_t size :
       {second + 3, second + 15, second + 27, second + 300, chain_.size() - 5}) {
    EXPECT_THAT(error_with(tls.certificate, chain_.substr(0, size)),
                HasSubstr(tls.certificate + " contains a certificate that is cut off or damaged"))
        << size;
  }
  std::string damaged = chain_;
  damaged[second + 200] = damaged[second + 200] == 'A' ? 'B' : 'A';
  EXPECT_NE(error_with(tls.certificate, damaged.erase(second + 100, 4)), "none");
  for (const std::string& text :
       {std::string(), std::string("hello"), key_.substr(0, key_.size() / 2), chain_}) {
    EXPECT_THAT(error_with(tls.key, text),
                HasSubstr(tls.key + " contains no unencrypted private key"));
  }
  EXPECT_THAT(error_with(tls.key, TextOf(authority_.Issue("other").key)),
              HasSubstr("does not belong to the certificate"));
  for (const std::string& text : {std::string(), std::string("x"), key_}) {
    EXPECT_THAT(error_with(tls.client_ca, text),
                HasSubstr(tls.client_ca + " contains no certificate"));
  }
  EXPECT_EQ(error_with(tls.certificate, chain_ + "\n  \n"), "none");
  // Blocks of other kinds and text between them are nothing to OpenSSL.
  EXPECT_EQ(error_with(tls.certificate, "our server:\n" + key_ + chain_ + "the end\n"), "none");
  Restore();
  std::filesystem::remove(tls.client_ca);
  EXPECT_THAT(CertificateError(), HasSubstr("cannot read " + tls.client_ca + ": No such file"));
}

// OpenSSL would refuse each connection, as it refuses keys of 1024 bits of RSA.
TEST_F(CertificateFilesTest, ACertificateThatOpenSslDoesNotServeIsRefused) {
  const TlsConfig& tls = config_.security.tls;
  const ProcessResult made =
      RunProcess({"/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj",
                  "/CN=weak", "-keyout", tls.key, "-out", tls.certificate});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(CertificateError(), HasSubstr("cannot use the certificate"));
}

// Half a rotation, a full disk, a typing error: nothing changes, and the operator is told once.
TEST_F(CertificateFilesTest, AnInvalidSetLeavesTheOneInUse) {
  Start();
  ASSERT_TRUE(ServesItsClients());
  const TlsConfig& tls = config_.security.tls;
  const std::string other = TextOf(authority_.Issue("other").key);
  const auto write = [](const std::string& path, const std::string& text) {
    return [path, text] { std::ofstream(path) << text; };
  };
  const std::vector<std::function<void()>> faults{
      write(tls.certificate, ""),
      write(tls.certificate, chain_.substr(0, chain_.size() / 2)),
      write(tls.key, ""),
      write(tls.key, other),
      [&] {
        std::ofstream(tls.certificate) << "";
        std::ofstream(tls.key) << "";
      },
      write(tls.client_ca, "hello"),
      [&] { std::filesystem::remove(tls.client_ca); },
      [&] {
        std::filesystem::remove(tls.key);
        ASSERT_EQ(mkfifo(tls.key.c_str(), 0600), 0);
      },
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    faults[i]();
    EXPECT_TRUE(Await([&] { return certificates_->reload_failed(); })) << i;
    EXPECT_TRUE(ServesItsClients()) << i;
    Restore();
    EXPECT_TRUE(Await([&] { return !certificates_->reload_failed(); })) << i;
  }
  EXPECT_TRUE(ServesItsClients());
  // Files written one after the other may be looked at in between.
  EXPECT_GE(lines().size(), faults.size());
  EXPECT_LE(lines().size(), 2 * faults.size());
  for (const std::string& line : lines()) {
    EXPECT_THAT(line, HasSubstr("; the certificates stay as they were"));
  }
}

// A new client CA counts for new connections, as the certificate does.
TEST_F(CertificateFilesTest, AClientAuthorityIsRotatedWithoutARestart) {
  Start();
  ASSERT_TRUE(ServesItsClients());
  const CertificateAuthority after(directory_ / "", "after");
  const CertificateFiles robot = after.Issue("another-robot");
  std::filesystem::copy_file(after.certificate(), config_.security.tls.client_ca,
                             std::filesystem::copy_options::overwrite_existing);
  ConnectOptions options = Trusting(authority_.certificate(), std::chrono::seconds(5));
  options.credentials.certificate = robot.certificate;
  options.credentials.key = robot.key;
  EXPECT_TRUE(Await([&] { return Serves(options); }));
  options.credentials.certificate = (directory_ / "robot.crt").string();
  options.credentials.key = (directory_ / "robot.key").string();
  options.connect_timeout = kShort;
  EXPECT_FALSE(Serves(options));
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
