// Identities of servers, and which answers servers of two builds may give together.
#include "client/cpp/transport/server_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/support/await.h"
#include "tests/support/faulty_link.h"
#include "tests/support/scripted_server.h"

namespace sap::test::server_identity {
namespace {

using client::BuildPin;
using client::BuildSearch;
using client::Client;
using client::ErrorCode;
using client::ParseServerIdentity;
using client::Problem;
using client::Status;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOld = "0.2.0 x86-64-v3 00000000000000aa";
constexpr const char* kOldElsewhere = "0.2.0 x86-64-v3 00000000000000bb";
constexpr const char* kNewer = "0.3.0 x86-64-v3 00000000000000cc";
constexpr const char* kPortable = "0.2.0 x86-64 00000000000000dd";

TEST(ServerIdentityTest, HasTheBuildAndTheProcess) {
  EXPECT_EQ(ParseServerIdentity(kPortable).build, "0.2.0 x86-64");
  EXPECT_EQ(ParseServerIdentity(kPortable).boot_id, "00000000000000dd");
}

TEST(ServerIdentityTest, AnyOtherTextIsNone) {
  for (const char* text : {"", "0.2.0", "0.2.0 x86-64", "0.2.0 x86-64 aa bb"}) {
    EXPECT_EQ(ParseServerIdentity(text).build, "") << text;
    EXPECT_EQ(ParseServerIdentity(text).boot_id, "") << text;
  }
}

TEST(BuildPinTest, TheFirstAnswerSaysWhatTheOthersMustBe) {
  BuildPin pin;
  EXPECT_TRUE(pin.Check(ParseServerIdentity(kNewer)).has_value());  // sets nothing
  EXPECT_TRUE(pin.Take({}).has_value());                            // nothing is known of that one
  EXPECT_TRUE(pin.Take(ParseServerIdentity(kOld)).has_value());
  EXPECT_TRUE(pin.Take(ParseServerIdentity(kOldElsewhere)).has_value());
  const auto newer = pin.Take(ParseServerIdentity(kNewer));
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(newer.error().reason, "OTHER_BUILD");
  EXPECT_EQ(newer.error().message,
            "server 00000000000000cc is 0.3.0 x86-64-v3, the answers before are of 0.2.0 "
            "x86-64-v3: bits may differ; begin again, or set allow_mixed_servers");
  const auto portable = pin.Check(ParseServerIdentity(kPortable));
  ASSERT_FALSE(portable.has_value());
  EXPECT_THAT(portable.error().message, HasSubstr("is 0.2.0 x86-64, the answers before are of"));
  EXPECT_TRUE(pin.Take(ParseServerIdentity(kOld)).has_value());
  pin.Forget();
  EXPECT_TRUE(pin.Take(ParseServerIdentity(kNewer)).has_value());
  EXPECT_FALSE(pin.Take(ParseServerIdentity(kOld)).has_value());
}

TEST(BuildSearchTest, EndsWhenAServerIsMetForTheThirdTime) {
  client::Error first, second;
  first.server = "aa";
  second.server = "bb";
  BuildSearch search;
  EXPECT_TRUE(search.GoesOn(first));
  EXPECT_TRUE(search.GoesOn(second));
  EXPECT_TRUE(search.GoesOn(first));
  EXPECT_TRUE(search.GoesOn(second));
  EXPECT_FALSE(search.GoesOn(first));
}

// Servers of one address, which take calls in turn.
class MixedServersTest : public testing::Test {
 protected:
  Client Connect(const std::vector<const ScriptedServer*>& servers,
                 bool allow_mixed_servers = false) const {
    std::string address;
    for (const ScriptedServer* server : servers) {
      address += (address.empty() ? "" : ",") + server->address();
    }
    auto client = Client::Connect(
        address, {.connect_timeout = kLong, .allow_mixed_servers = allow_mixed_servers});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  ScriptedServer old_{kOld};
  ScriptedServer old_elsewhere_{kOldElsewhere};
  ScriptedServer newer_{kNewer};
};

TEST_F(MixedServersTest, IndependentCallsTakeEachOfThem) {
  Client client = Connect({&old_, &newer_});
  const std::vector<Problem> problems(2);
  const auto calls = [&]() -> Status {
    if (auto solved = client.Solve(Problem()); !solved) return tl::unexpected(solved.error());
    const auto outcomes = client.SolveBatch(problems);
    if (!outcomes[1]) return tl::unexpected(outcomes[1].error());
    return client.StreamBatch(problems, {}, [](int, const Client::SolveOutcome&) {});
  };
  while (old_.calls() < 5 || newer_.calls() < 5) {
    const Status status = calls();
    ASSERT_TRUE(status.has_value()) << status.error().message;
  }
}

// Sessions that lose their server, before an outcome or after it.
class InterruptedTest : public MixedServersTest {
 protected:
  // Through the link, which leads to the old server first.
  client::Session OpenThroughLink(bool allow_mixed_servers = false) {
    auto client = Client::Connect(
        link_.address(), {.connect_timeout = kLong, .allow_mixed_servers = allow_mixed_servers});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    auto session = client->OpenSession();
    EXPECT_TRUE(session.has_value()) << session.error().message;
    return std::move(*session);
  }
  void LeadTo(const ScriptedServer& server) {
    link_.Redirect(server.address());
    link_.Cut();
  }

  FaultyLink link_{old_.address()};
};

TEST_F(InterruptedTest, ASessionWithOutcomesEndsWhereOtherBuildsAreLeft) {
  client::Session session = OpenThroughLink();
  ASSERT_TRUE(session.Step(Problem()).has_value());
  LeadTo(newer_);
  const auto next = session.Step(Problem());
  ASSERT_FALSE(next.has_value());
  EXPECT_EQ(next.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(next.error().reason, "OTHER_BUILD");
  EXPECT_THAT(next.error().message, AllOf(HasSubstr("is 0.3.0"), HasSubstr("are of 0.2.0")));
  EXPECT_FALSE(session.open());
}

TEST_F(InterruptedTest, ASessionWithoutOutcomesGoesOnAtAnotherBuild) {
  client::Session session = OpenThroughLink();
  LeadTo(newer_);
  const auto first = session.Step(Problem());
  EXPECT_TRUE(first.has_value()) << first.error().message;
}

TEST_F(InterruptedTest, ASessionThatBeginsAgainDoesSoAtAnotherBuild) {
  client::Session session = OpenThroughLink();
  ASSERT_TRUE(session.Step(Problem()).has_value());
  ASSERT_TRUE(session.Reset().has_value());
  LeadTo(newer_);
  const auto next = session.Step(Problem());
  EXPECT_TRUE(next.has_value()) << next.error().message;
  LeadTo(old_);
  EXPECT_FALSE(session.Step(Problem()).has_value());
}

TEST_F(InterruptedTest, ASessionGoesOnAtAnotherBuildWhereThatIsAllowed) {
  client::Session session = OpenThroughLink(/*allow_mixed_servers=*/true);
  for (const ScriptedServer* server : {&old_, &newer_, &old_}) {
    LeadTo(*server);
    const auto step = session.Step(Problem());
    EXPECT_TRUE(step.has_value()) << step.error().message;
  }
}

TEST_F(MixedServersTest, ASessionPassesOverServersOfOtherBuilds) {
  Client client = Connect({&old_, &newer_});
  bool has_passed_over = false;
  while (!has_passed_over) {
    const int before = newer_.calls();
    auto session = client.OpenSession();
    ASSERT_TRUE(session.has_value()) << session.error().message;
    ASSERT_TRUE(session->Step(Problem()).has_value());
    if (newer_.calls() > before) continue;  // it began there
    old_.EndNext({.code = grpc::StatusCode::UNAVAILABLE});
    const auto next = session->Step(Problem());
    ASSERT_TRUE(next.has_value()) << next.error().message;
    has_passed_over = newer_.calls() > before;
  }
}

// Each server answers one of the three problems and ends. The second one that is asked is of
// another build, and its outcome is not taken.
TEST_F(MixedServersTest, ABatchStreamGoesOnAtAServerOfItsBuild) {
  Client client = Connect({&old_, &newer_});
  while (old_.calls() == 0 || newer_.calls() == 0) {
    ASSERT_TRUE(client.Solve(Problem()).has_value());  // until both are connected
  }
  for (ScriptedServer* server : {&old_, &newer_}) {
    server->EndNext({.code = grpc::StatusCode::UNAVAILABLE, .after = 1});
  }
  std::vector<int> indices;
  const Status status =
      client.StreamBatch(std::vector<Problem>(3), {},
                         [&](int index, const Client::SolveOutcome&) { indices.push_back(index); });
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_THAT(indices, ElementsAre(2, 1, 0));
  const bool began_at_old = old_.batch_sizes().size() == 2;
  EXPECT_THAT((began_at_old ? old_ : newer_).batch_sizes(), ElementsAre(3, 2));
  EXPECT_THAT((began_at_old ? newer_ : old_).batch_sizes(), ElementsAre(2));
}

}  // namespace
}  // namespace sap::test::server_identity
