// Servers of a fleet are restarted in turn, by SIGTERM and by SIGKILL, while clients call them: no
// call and no step fails, none is lost, doubled or out of order, and all have the bits of a run
// without restarts.
#include "tests/e2e/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <tuple>
#include <vector>

#include "tests/e2e/fleet/balancer.h"
#include "tests/e2e/fleet/load.h"

namespace sap::test {
namespace {

// Longer than each balancer takes to notice; deploy/README.md has 5 s.
double LameDuck_s(Balancing balancing) {
  if (IsFullProof()) return 5;
  return balancing == Balancing::kAddressList ? 0.5 : 1.5;
}

// A fault counts only under load: each client had this many outcomes since the one before.
int OutcomesBetweenFaults() { return IsFullProof() ? 2500 : 100; }

using Case = std::tuple<Balancing, Work>;

// At length all pairs. Else every kind of work with the list of addresses, and each balancer with
// sessions and one kind of calls, which take turns.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Balancing balancing :
       {Balancing::kAddressList, Balancing::kHaproxy, Balancing::kEnvoy}) {
    for (const Work work : {Work::kSessions, Work::kUnary, Work::kBatch, Work::kStreamBatch}) {
      const bool short_run =
          balancing == Balancing::kAddressList || work == Work::kSessions ||
          work == (balancing == Balancing::kHaproxy ? Work::kUnary : Work::kStreamBatch);
      if (IsFullProof() || short_run) cases.emplace_back(balancing, work);
    }
  }
  return cases;
}

class FleetTest : public testing::TestWithParam<Case> {
 protected:
  Balancing balancing() const { return std::get<Balancing>(GetParam()); }
  Work work() const { return std::get<Work>(GetParam()); }

  // By each signal. Of sessions without a balancer the full proof is a million steps of four
  // clients and 102 restarts.
  int RestartsOfEachServer() const {
    if (!IsFullProof()) return 1;
    return balancing() == Balancing::kAddressList && work() == Work::kSessions ? 17 : 10;
  }

  // Restarts each server so many times, in turn; the slowest step or call meanwhile.
  double RestartAll_ms(int signal) {
    load_.TakeSlowest_ms();
    for (int i = 0; i < RestartsOfEachServer() * Fleet::kServers; ++i) {
      const int server = i % Fleet::kServers;
      if (!load_.AwaitOutcomes(OutcomesBetweenFaults())) return 0;
      met_load_ += fleet_.Solved(server) > 0;
      fleet_.Restart(server, signal);
      ++restarts_;
    }
    load_.AwaitOutcomes(OutcomesBetweenFaults());
    return load_.TakeSlowest_ms();
  }

  Fleet fleet_{LameDuck_s(balancing())};
  Balancer balancer_{balancing(), fleet_};
  Load load_{work(), balancer_.address(), fleet_.Options()};
  int restarts_{0};
  int met_load_{0};  // restarts of a server that had solved something since its start
};

TEST_P(FleetTest, RestartsUnderLoadLoseDoubleReorderAndChangeNothing) {
  const double announced_ms = RestartAll_ms(SIGTERM);
  const double killed_ms = RestartAll_ms(SIGKILL);
  int answered = 0;
  for (const Ledger& ledger : load_.Finish()) {
    answered += ledger.answered;
    EXPECT_THAT(ledger.violations, testing::IsEmpty());
    EXPECT_EQ(ledger.solved, ledger.answered - ledger.answered / 97);  // see LedgerProblem
  }
  std::printf(
      "%d outcomes, %d restarts, %d of them of a server with load; slowest %.0f ms with "
      "SIGTERM, %.0f ms with SIGKILL\n",
      answered, restarts_, met_load_, announced_ms, killed_ms);
  RecordProperty("outcomes", answered);
  RecordProperty("slowest_announced_ms", std::to_string(announced_ms));
  RecordProperty("slowest_killed_ms", std::to_string(killed_ms));
  EXPECT_EQ(restarts_, 2 * RestartsOfEachServer() * Fleet::kServers);
  EXPECT_GE(2 * met_load_, restarts_);
  if (IsFullProof() && work() == Work::kSessions) {
    EXPECT_LE(announced_ms, 100);
    EXPECT_LE(killed_ms, 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FleetTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<FleetTest::ParamType>& info) {
                           return Name(std::get<Balancing>(info.param)) +
                                  Name(std::get<Work>(info.param));
                         });

}  // namespace
}  // namespace sap::test
