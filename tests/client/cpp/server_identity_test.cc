// Identities of servers, and the refusal of those that could give other bits.
#include "client/cpp/transport/server_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/support/await.h"
#include "tests/support/scripted_server.h"

namespace sap::test::server_identity {
namespace {

using client::BuildCheck;
using client::Client;
using client::ErrorCode;
using client::ParseServerIdentity;
using client::Problem;
using client::Status;
using testing::AllOf;
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

TEST(BuildCheckTest, TheFirstServerSaysWhatTheOthersMustBe) {
  BuildCheck check(/*allow_mixed_servers=*/false);
  EXPECT_TRUE(check.Check({}).has_value());  // nothing is known of that one
  EXPECT_TRUE(check.Check(ParseServerIdentity(kOld)).has_value());
  EXPECT_TRUE(check.Check(ParseServerIdentity(kOldElsewhere)).has_value());
  const auto newer = check.Check(ParseServerIdentity(kNewer));
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(newer.error().message,
            "server 00000000000000cc is 0.3.0 x86-64-v3, the first one was 0.2.0 x86-64-v3: bits "
            "may differ; set allow_mixed_servers");
  const auto portable = check.Check(ParseServerIdentity(kPortable));
  ASSERT_FALSE(portable.has_value());
  EXPECT_THAT(portable.error().message, HasSubstr("is 0.2.0 x86-64, the first one was"));
  EXPECT_TRUE(check.Check(ParseServerIdentity(kOld)).has_value());
}

// Two servers of one address. Calls go to them in turn.
class MixedServersTest : public testing::TestWithParam<const char*> {
 protected:
  // Calls until each server had one, or until one fails.
  Status CallBoth(const ScriptedServer& first, const ScriptedServer& second,
                  bool allow_mixed_servers = false) const {
    auto client =
        Client::Connect(first.address() + "," + second.address(),
                        {.connect_timeout = kLong, .allow_mixed_servers = allow_mixed_servers});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    while (first.calls() == 0 || second.calls() == 0) {
      if (auto status = Call(&*client); !status) return status;
    }
    return {};
  }

  static Status Call(Client* client) {
    const std::string kind = GetParam();
    if (kind == "Solve") {
      return client->Solve(Problem()).map([](const client::Solution&) {});
    }
    if (kind == "StreamBatch") {
      return client->StreamBatch(std::vector<Problem>(1), {},
                                 [](int, const Client::SolveOutcome&) {});
    }
    auto session = client->OpenSession();
    if (!session) return tl::unexpected(session.error());
    return session->Close();
  }

  ScriptedServer old_{kOld};
  ScriptedServer old_elsewhere_{kOldElsewhere};
  ScriptedServer newer_{kNewer};
};

TEST_P(MixedServersTest, OfOneBuildAnswerTogether) {
  const Status status = CallBoth(old_, old_elsewhere_);
  EXPECT_TRUE(status.has_value()) << status.error().message;
}

TEST_P(MixedServersTest, OfTwoBuildsAreRefused) {
  const Status status = CallBoth(old_, newer_);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("0.2.0 x86-64-v3"), HasSubstr("0.3.0 x86-64-v3"),
                    HasSubstr("bits may differ; set allow_mixed_servers")));
}

TEST_P(MixedServersTest, OfTwoBuildsAnswerWhereThatIsAllowed) {
  const Status status = CallBoth(old_, newer_, /*allow_mixed_servers=*/true);
  EXPECT_TRUE(status.has_value()) << status.error().message;
}

// The second server's outcomes are refused before any of them is seen.
TEST(MixedStreamTest, NoOutcomeOfAnotherBuildReachesTheSink) {
  const ScriptedServer old(kOld), newer(kNewer);
  auto client = Client::Connect(old.address() + "," + newer.address(), {.connect_timeout = kLong});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  int answered = 0, outcomes = 0;
  Status status;
  while (status) {
    status = client->StreamBatch(std::vector<Problem>(1), {},
                                 [&](int, const Client::SolveOutcome&) { ++outcomes; });
    if (status) ++answered;
  }
  EXPECT_EQ(status.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(outcomes, answered);
}

INSTANTIATE_TEST_SUITE_P(Calls, MixedServersTest,
                         testing::Values("Solve", "StreamBatch", "SolveSession"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sap::test::server_identity
