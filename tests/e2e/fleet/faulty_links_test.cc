// Links between clients and the servers of a fleet are reset, stall and are slow: nothing is lost,
// doubled, reordered or wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <thread>

#include "tests/e2e/fleet/fleet.h"
#include "tests/e2e/fleet/load.h"
#include "tests/support/faulty_link.h"

namespace sap::test {
namespace {

using std::chrono::milliseconds;

const int kFaults = IsFullProof() ? 300 : 24;
const int kOutcomesBetweenFaults = IsFullProof() ? 200 : 30;

class FaultyLinksTest : public testing::TestWithParam<Work> {
 protected:
  static std::vector<std::string> Flags() { return {"--threads", "1"}; }

  std::string Addresses() const {
    return links_[0].address() + "," + links_[1].address() + "," + links_[2].address();
  }

  // Faults of networks, one after the other, at one link.
  void Harm(int fault, FaultyLink* link) {
    switch (fault % 3) {
      case 0:
        link->Cut();
        break;
      case 1:
        link->Stall(true);
        Pause(50, 250);
        link->Stall(false);
        break;
      default:
        link->Delay(milliseconds(20));
        Pause(100, 300);
        link->Cut();
        link->Delay(milliseconds(0));
    }
  }

  void Pause(unsigned least_ms, unsigned most_ms) {
    std::this_thread::sleep_for(milliseconds(least_ms + random_() % (most_ms - least_ms)));
  }

  std::array<ServerProcess, 3> servers_{ServerProcess(Flags()), ServerProcess(Flags()),
                                        ServerProcess(Flags())};
  std::array<FaultyLink, 3> links_{FaultyLink(servers_[0].address()),
                                   FaultyLink(servers_[1].address()),
                                   FaultyLink(servers_[2].address())};
  std::mt19937 random_{1};
};

TEST_P(FaultyLinksTest, ResetsStallsAndDelaysLoseNothing) {
  client::ConnectOptions options;
  options.connect_timeout = kPatience;
  Load load(GetParam(), Addresses(), options);
  int faults = 0;
  for (; faults < kFaults && load.AwaitOutcomes(kOutcomesBetweenFaults); ++faults) {
    Harm(faults, &links_[faults / 3 % 3]);
  }
  load.AwaitOutcomes(kOutcomesBetweenFaults);
  for (const Ledger& ledger : load.Finish()) EXPECT_THAT(ledger.violations, testing::IsEmpty());
  EXPECT_EQ(faults, kFaults);
}

INSTANTIATE_TEST_SUITE_P(All, FaultyLinksTest,
                         testing::Values(Work::kSessions, Work::kUnary, Work::kBatch,
                                         Work::kStreamBatch),
                         [](const auto& info) { return Name(info.param); });

}  // namespace
}  // namespace sap::test
