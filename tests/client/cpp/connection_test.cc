// How a client reaches its servers: credentials, names of calls, late servers, forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "client/cpp/client.h"
#include "client/cpp/transport/authorization.h"
#include "tests/client/cpp/session_steps.h"
#include "tests/support/await.h"
#include "tests/support/child_process.h"
#include "tests/support/scripted_server.h"
#include "tests/support/transports.h"

namespace sap::test::connection {
namespace {

using client::Authorization;
using client::Client;
using client::ErrorCode;
using client::Problem;
using client::SolveOptions;
using testing::HasSubstr;

class AuthorizationTest : public testing::Test {
 protected:
  // At a time of its own: the clock of a file system may be coarse.
  void Write(const std::string& token) {
    std::ofstream(file_) << token << "\n";
    std::filesystem::last_write_time(
        file_, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(++writes_));
  }

  TemporaryDirectory directory_;
  const std::string file_{(directory_ / "token").string()};
  int writes_{0};
};

TEST_F(AuthorizationTest, ATokenThatIsReplacedIsSentWithTheNextCall) {
  Write("first");
  const auto authorization = *Authorization::Make({.token_file = file_});
  EXPECT_EQ(authorization->Value(), "Bearer first");
  Write("second");
  EXPECT_EQ(authorization->Value(), "Bearer second");
}

TEST_F(AuthorizationTest, WhileTheFileIsBeingReplacedTheLastTokenIsSent) {
  Write("first");
  const auto authorization = *Authorization::Make({.token_file = file_});
  std::filesystem::remove(file_);
  EXPECT_EQ(authorization->Value(), "Bearer first");
  Write("");
  EXPECT_EQ(authorization->Value(), "Bearer first");
  Write("third");
  EXPECT_EQ(authorization->Value(), "Bearer third");
}

TEST_F(AuthorizationTest, ATokenMayBeGivenAsText) {
  EXPECT_EQ((*Authorization::Make({.token = "text"}))->Value(), "Bearer text");
  EXPECT_EQ((*Authorization::Make({}))->Value(), "");
  Write("first");
  EXPECT_THAT(Authorization::Make({.token = "text", .token_file = file_}).error().message,
              HasSubstr("not both"));
  for (const char* token : {" ", "two words", "li\nne", "caf\xc3\xa9"}) {
    EXPECT_EQ(Authorization::Make({.token = token}).error().code, ErrorCode::kInvalidArgument)
        << token;
  }
}

// gRPC would end the process over them.
TEST(HeadersTest, ThatCannotBeSentAreRefused) {
  const Server server("tcp:", ConfigWithThreads(2));
  Client client = server.Connect();
  SolveOptions options;
  for (const std::string& text :
       {std::string("li\nne"), std::string("caf\xc3\xa9"), std::string(257, 'x')}) {
    options.call = {.request_id = text};
    EXPECT_EQ(client.Solve(SceneAt(0), options).error().field, "options.call.request_id");
    options.call = {.traceparent = text};
    EXPECT_EQ(client.Solve(SceneAt(0), options).error().field, "options.call.traceparent");
    EXPECT_FALSE(client.OpenSession(options).has_value());
  }
}

TEST(HeadersTest, AnErrorHasTheNameOfItsCall) {
  const Server server("tcp:", ConfigWithThreads(2));
  Client client = server.Connect();
  SolveOptions options;
  options.call.request_id = "step 17 of robot 4";
  Problem bad = SceneAt(0);
  bad.contacts.law.friction[2] = -0.3;
  const auto error = client.Solve(bad, options).error();
  EXPECT_EQ(error.request_id, "step 17 of robot 4");
  EXPECT_EQ(client::FieldIndex(error), 2);
  EXPECT_EQ(client::FieldIndex({.field = "time_step"}), -1);
  EXPECT_EQ(client::FieldIndex({.field = "a[x]"}), -1);
}

// Also where who ended the call gave none.
TEST(ErrorTextTest, AnErrorAlwaysHasAText) {
  ScriptedServer server("0.2.0 x86-64-v3 00000000000000aa");
  auto client = Client::Connect(server.address(), {.connect_timeout = kLong});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  for (const auto& [code, text] : std::map<grpc::StatusCode, std::string>{
           {grpc::StatusCode::NOT_FOUND,
            "the call has ended with the gRPC status NOT_FOUND and no text"},
           {grpc::StatusCode::UNAUTHENTICATED,
            "the call has ended with the gRPC status UNAUTHENTICATED and no text"},
           {grpc::StatusCode::UNIMPLEMENTED,
            "the server at this address does not know the call"}}) {
    server.EndNext({.code = code, .with_identity = true, .message = ""});
    const auto solved = client->Solve(Problem());
    ASSERT_FALSE(solved.has_value());
    EXPECT_EQ(solved.error().message, text);
  }
}

// The first call connects.
TEST(LazyConnectionTest, AServerMayStartAfterItsClients) {
  const TemporaryDirectory directory;
  const std::string address = "unix:" + (directory / "socket").string();
  auto client = Client::Connect(address, {.connect_timeout = {}, .reconnect_within = kLong});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  auto background = client->OpenSession({}, {.background = true});
  ServerConfig config = ConfigWithThreads(2);
  config.listen = address;
  RequestHandler handler(config);
  const auto server = GrpcServer::Start(config, &handler);
  ASSERT_TRUE(server.has_value()) << server.error();
  const auto solved = client->Solve(SceneAt(0));
  ASSERT_TRUE(solved.has_value()) << solved.error().message;
  EXPECT_EQ(Seen(background->Step(SceneAt(0))), Seen(solved));
}

TEST(LazyConnectionTest, WithoutAServerTheFirstCallIsUnavailable) {
  const TemporaryDirectory directory;
  auto client =
      Client::Connect("unix:" + (directory / "socket").string(),
                      {.connect_timeout = {}, .reconnect_within = std::chrono::milliseconds(200)});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  EXPECT_EQ(client->Solve(SceneAt(0)).error().code, ErrorCode::kUnavailable);
}

// The address may be wrong, the server down, or one side without TLS.
TEST(LazyConnectionTest, TheReasonWhyNoServerAnswersIsInTheError) {
  const auto message_of = [](const std::string& address, bool tls) {
    client::ConnectOptions options{.connect_timeout = std::chrono::milliseconds(300)};
    options.credentials.tls = tls;
    return Client::Connect(address, options).error().message;
  };
  EXPECT_THAT(message_of("127.0.0.1:1", false),
              testing::AllOf(testing::StartsWith("no server answers at 127.0.0.1:1; "),
                             HasSubstr("Connection refused")));
  ServerConfig config = ConfigWithThreads(1);
  config.listen = "127.0.0.1:0";
  RequestHandler handler(config);
  const auto server = GrpcServer::Start(config, &handler);
  ASSERT_TRUE(server.has_value()) << server.error();
  EXPECT_THAT(message_of((*server)->address(), true), HasSubstr("does not speak TLS"));
}

// The child has the descriptors of its parent, but none of its threads.
TEST(ForkTest, AChildIsRefusedWhatItsParentHadAndDoesItNoHarm) {
  const Server server("tcp:", ConfigWithThreads(2));
  auto client = std::make_unique<Client>(server.Connect());
  auto session = std::make_unique<client::Session>(*client->OpenSession());
  auto background =
      std::make_unique<client::Session>(*client->OpenSession({}, {.background = true}));
  const Problem problem = SceneAt(0);
  ASSERT_TRUE(session->Step(problem).has_value());
  ASSERT_TRUE(background->Step(problem).has_value());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    const auto is_refused = [](const auto& outcome) {
      return !outcome && outcome.error().code == ErrorCode::kFailedPrecondition &&
             outcome.error().reason == "FORKED";
    };
    bool refused = is_refused(client->Solve(problem)) && is_refused(client->Info()) &&
                   is_refused(client->SolveBatch({&problem, 1})[0]) &&
                   is_refused(client->OpenSession()) && is_refused(session->Step(problem)) &&
                   is_refused(background->Step(problem)) && is_refused(session->Close()) &&
                   is_refused(Client::Connect("127.0.0.1:1"));
    refused = refused && Client::Connect("embedded:")->Solve(problem).has_value();
    background.reset();
    session.reset();
    client.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(session->Step(problem).has_value());
  EXPECT_TRUE(background->Step(problem).has_value());
  EXPECT_TRUE(client->Solve(problem).has_value());
}

}  // namespace
}  // namespace sap::test::connection
