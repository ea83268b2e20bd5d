// A scene that is split over the servers of a list has every bit of one solver's answer, also while
// each of the servers is restarted.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "client/cpp/client.h"
#include "tests/e2e/fleet/balancer.h"
#include "tests/e2e/fleet/fleet.h"
#include "tests/e2e/fleet/load.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {
namespace {

const int kRounds = IsFullProof() ? 10 : 2;

TEST(SplitOverFleetTest, RestartsInTheMiddleOfASolveChangeNoBit) {
  Fleet fleet(/*lame_duck_s=*/0.5);
  const Balancer list(Balancing::kAddressList, fleet);
  auto client = client::Client::Connect(list.address(), fleet.Options());
  ASSERT_TRUE(client) << client.error().message;
  const client::Problem scene = Stacks(60, 12);
  const auto whole = client::Client::Connect("embedded:")->Solve(scene);
  ASSERT_TRUE(whole);
  const AnswerBits expected = Bits(*whole);
  std::atomic<bool> finishing{false};
  std::atomic<int> solves{0};
  // Servers are restarted by this thread, with which they would end.
  std::thread solver([&] {
    for (; !finishing && !testing::Test::HasFailure(); ++solves) {
      const auto solution = client->Solve(scene, {}, Fleet::kServers);
      ASSERT_TRUE(solution) << solution.error().message;
      EXPECT_EQ(Bits(*solution), expected);
    }
  });
  for (int i = 0; i < kRounds * Fleet::kServers; ++i) {
    for (const int signal : {SIGTERM, SIGKILL}) {
      const auto give_up = std::chrono::steady_clock::now() + kPatience;
      while (fleet.Solved(i % Fleet::kServers) == 0 && !testing::Test::HasFailure() &&
             std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      EXPECT_GT(fleet.Solved(i % Fleet::kServers), 0);
      fleet.Restart(i % Fleet::kServers, signal);
    }
  }
  finishing = true;
  solver.join();
  std::printf("%d solves, %d restarts\n", solves.load(), 2 * kRounds * Fleet::kServers);
}

}  // namespace
}  // namespace sap::test
