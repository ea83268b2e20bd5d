// A server that is added to the addresses of a name gets its share of the load, although sessions
// and connections stay where they are: --connection-age-s moves them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <thread>

#include "tests/e2e/fleet/dns_responder.h"
#include "tests/e2e/fleet/fleet.h"
#include "tests/e2e/fleet/load.h"
#include "tests/support/await.h"

namespace sap::test {
namespace {

const int kAge_s = IsFullProof() ? 10 : 3;
constexpr int kClients = 16;
constexpr int kBefore = 3;  // servers before the scale-up

class ScaleUpTest : public testing::TestWithParam<Work> {
 protected:
  static std::string Host(int server) { return "127.0.0." + std::to_string(21 + server); }

  void AddServer() {
    const std::string host = Host(static_cast<int>(servers_.size()));
    probes_.push_back(host + ":" + std::to_string(ready_port_));
    servers_.push_back(std::make_unique<ServerProcess>(std::vector<std::string>{
        "--listen", host + ":" + std::to_string(port_), "--metrics-listen", probes_.back(),
        "--threads", "1", "--connection-age-s", std::to_string(kAge_s)}));
    hosts_.push_back(host);
    names_.SetAddresses(hosts_);
  }

  // Whether the last server solves a good part of what is solved in a while.
  bool LastHasItsShare(Load* load) const {
    const std::vector<int> before = Solved();
    EXPECT_TRUE(load->AwaitOutcomes(200));
    const std::vector<int> after = Solved();
    const double all =
        std::reduce(after.begin(), after.end()) - std::reduce(before.begin(), before.end());
    const double share = (after.back() - before.back()) / all;
    std::printf("the fourth server has %.0f %% of the load\n", 100 * share);
    return share >= 0.15;
  }

  // Problems that each server has solved since its start.
  std::vector<int> Solved() const {
    std::vector<int> counts;
    for (const std::string& probe : probes_) counts.push_back(ProblemsSolved(probe));
    return counts;
  }

  int port_{FreePort(Host(0))};
  int ready_port_{FreePort(Host(0))};
  DnsResponder names_{{}};
  std::vector<std::string> hosts_;
  std::vector<std::string> probes_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
};

// Connections have an age that differs by a tenth, so that two ages are time for all to move.
TEST_P(ScaleUpTest, AFourthServerGetsItsShare) {
  for (int i = 0; i < kBefore; ++i) AddServer();
  client::ConnectOptions options;
  options.connect_timeout = kPatience;
  Load load(GetParam(), "dns://" + names_.address() + "/solvers.test:" + std::to_string(port_),
            options, kClients, Connections::kOne);
  ASSERT_TRUE(load.AwaitOutcomes(100));
  AddServer();
  std::this_thread::sleep_for(std::chrono::seconds(2 * kAge_s));
  if (IsFullProof()) {
    EXPECT_TRUE(LastHasItsShare(&load));
  } else {  // a busy machine takes longer
    EXPECT_TRUE(Await([&] { return HasFailure() || LastHasItsShare(&load); }));
  }
  for (const Ledger& ledger : load.Finish()) EXPECT_THAT(ledger.violations, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, ScaleUpTest, testing::Values(Work::kSessions, Work::kUnary),
                         [](const auto& info) { return Name(info.param); });

}  // namespace
}  // namespace sap::test
