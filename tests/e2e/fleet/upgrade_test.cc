// Servers are replaced one by one by those of another version, and back, while clients that were
// connected before call them. No call fails; what has to have the bits of one build keeps them, or
// ends with OTHER_BUILD and begins again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <deque>
#include <filesystem>
#include <thread>

#include "client/cpp/client.h"
#include "tests/e2e/fleet/balancer.h"
#include "tests/e2e/fleet/fleet.h"
#include "tests/e2e/fleet/load.h"
#include "tests/support/await.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {
namespace {

using client::Client;
using client::Problem;

constexpr const char* kFirst = SAP_SERVER_BINARY;
constexpr const char* kNext = SAP_NEXT_SERVER_BINARY;
constexpr int kOutcomes = 60;  // of each client before and after each replacement

class UpgradeTest : public testing::Test {
 protected:
  client::ConnectOptions Options() const {
    client::ConnectOptions options = fleet_.Options();
    options.reconnect_within = kPatience;
    return options;
  }

  Fleet fleet_{/*lame_duck_s=*/0.5};
  Balancer list_{Balancing::kAddressList, fleet_};
};

class UpgradedCallsTest : public UpgradeTest, public testing::WithParamInterface<Work> {
 protected:
  // All servers of the fleet become those of the program, under load.
  void Replace(const char* program, int servers, Load* load) {
    for (int server = 0; server < servers; ++server) {
      ASSERT_TRUE(load->AwaitOutcomes(kOutcomes));
      fleet_.Restart(server, SIGTERM, program);
    }
    ASSERT_TRUE(load->AwaitOutcomes(kOutcomes));
  }

  static void ExpectNoViolation(Load* load) {
    for (const Ledger& ledger : load->Finish()) {
      EXPECT_THAT(ledger.violations, testing::IsEmpty());
      EXPECT_GT(ledger.answered, 0);
    }
  }
};

TEST_P(UpgradedCallsTest, NoneFailsWhileServersOfAListAreReplaced) {
  Load load(GetParam(), list_.address(), Options());
  Replace(kNext, Fleet::kServers, &load);
  Replace(kFirst, Fleet::kServers, &load);
  ExpectNoViolation(&load);
}

TEST_P(UpgradedCallsTest, NoneFailsWhileTheServerOfAnAddressIsReplaced) {
  Load load(GetParam(), fleet_.address(0), Options());
  Replace(kNext, 1, &load);
  Replace(kFirst, 1, &load);
  ExpectNoViolation(&load);
}

INSTANTIATE_TEST_SUITE_P(Of, UpgradedCallsTest,
                         testing::Values(Work::kUnary, Work::kBatch, Work::kStreamBatch),
                         [](const auto& test) { return Name(test.param); });

// A client that always has one session, which it opens again where no server of its build is left.
class SessionUser {
 public:
  SessionUser(Language language, int number, const std::string& address,
              const client::ConnectOptions& options)
      : number_(number), client_(*Connect(language, address, options)) {}

  // Ends also with an error that should not be.
  void Run(const std::atomic<bool>& finishing) {
    while (!finishing && error_.empty()) error_ = UseOneSession(finishing);
    stopped_ = true;
  }

  int steps() const { return steps_; }
  int ended() const { return ended_; }
  bool stopped() const { return stopped_; }
  // After Run.
  const std::string& error() const { return error_; }

 private:
  std::string UseOneSession(const std::atomic<bool>& finishing) {
    auto session = client_->OpenSession();
    if (!session) return "not opened: " + session.error().message;
    auto embedded = Client::Connect("embedded:", {.threads = 1});
    auto reference = embedded->OpenSession();
    while (!finishing) {
      const Problem problem = LedgerProblem(number_, 1 + steps_ % 96);
      const Outcome outcome = (*session)->Step(problem);
      if (!outcome && outcome.error().reason == "OTHER_BUILD") {
        ++ended_;
        return "";
      }
      if (!outcome) return "step: " + outcome.error().message;
      if (Bits(*outcome) != Bits(*reference->Step(problem))) return "a step has other bits";
      ++steps_;
    }
    return "";
  }

  const int number_;
  const std::unique_ptr<TestedClient> client_;
  std::atomic<int> steps_{0};
  std::atomic<int> ended_{0};
  std::atomic<bool> stopped_{false};
  std::string error_;
};

TEST_F(UpgradeTest, ASessionEndsOnlyWithTheLastServerOfItsBuildAndIsOpenedAgain) {
  std::deque<SessionUser> users;
  for (const Language language : Languages()) {
    users.emplace_back(language, static_cast<int>(users.size()), list_.address(), Options());
  }
  std::atomic<bool> finishing{false};
  std::vector<std::thread> threads;
  for (SessionUser& user : users) threads.emplace_back([&] { user.Run(finishing); });
  const auto await_steps = [&] {
    for (const SessionUser& user : users) {
      const int enough = user.steps() + kOutcomes;
      EXPECT_TRUE(Await([&] { return user.steps() >= enough || user.stopped(); }));
    }
  };
  int rounds = 0;
  for (const char* program : {kNext, kFirst}) {
    ++rounds;
    for (int server = 0; server < Fleet::kServers; ++server) {
      await_steps();
      fleet_.Restart(server, SIGTERM, program);
    }
    await_steps();
    for (const SessionUser& user : users) EXPECT_GE(user.ended(), rounds);
  }
  finishing = true;
  for (std::thread& thread : threads) thread.join();
  for (const SessionUser& user : users) {
    EXPECT_EQ(user.error(), "");
    std::printf("%d steps, %d sessions ended\n", user.steps(), user.ended());
  }
}

class MixedFleetTest : public UpgradeTest {
 protected:
  MixedFleetTest() { fleet_.Restart(1, SIGTERM, kNext); }

  Client client_{*Client::Connect(list_.address(), Options())};
};

TEST_F(MixedFleetTest, ASplitSceneHasTheBitsOfTheWhole) {
  const Problem scene = Stacks(60, 12);
  const auto whole = Client::Connect("embedded:")->Solve(scene);
  ASSERT_TRUE(whole.has_value());
  for (int i = 0; i < 4; ++i) {
    const auto split = client_.Solve(scene, {}, Fleet::kServers);
    ASSERT_TRUE(split.has_value()) << split.error().message;
    EXPECT_EQ(Bits(*split), Bits(*whole));
  }
}

// The report tells the build of those servers that solved the records.
TEST_F(MixedFleetTest, ARecordingIsReplayedByServersOfOneBuild) {
  const TemporaryDirectory directory;
  ServerProcess recorder({"--record", directory / ""});
  Client recorded = recorder.Connect();
  constexpr int kRecords = 12;
  for (int i = 1; i <= kRecords; ++i) ASSERT_TRUE(recorded.Solve(LedgerProblem(1, i)));
  recorder.Terminate();
  ASSERT_EQ(recorder.Wait().exit_code, 0);
  const std::string file = begin(std::filesystem::directory_iterator(directory / ""))->path();
  for (const bool is_next : {false, true}) {
    if (is_next) {
      for (const int server : {0, 2}) fleet_.Restart(server, SIGTERM, kNext);
    }
    const auto report = client_.Replay(file);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->identical, kRecords) << report->first_difference;
    if (is_next) {
      EXPECT_FALSE(report->same_build);
    }
  }
}

}  // namespace
}  // namespace sap::test
