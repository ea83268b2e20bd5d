// Nothing is lost, doubled, reordered or wrong: many clients step sessions at a real server while
// connections are cut, the network stands still, and the server itself is stopped and continued,
// shut down, killed, and replaced.
#include "tests/e2e/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "tests/e2e/server_process.h"
#include "tests/support/faulty_link.h"

namespace sap::test {
namespace {

constexpr int kClients = 4;
const int kSteps = (IsFullProof() ? 1'000'000 : 20'000) / kClients;
constexpr int kLeastFaults = 8;

// Answers that each client has had.
using Progress = std::array<std::atomic<int>, kClients>;

// Until told to end: one fault after the other, at times that repeat, but not before every client
// got on after the last one: on a machine that is busy with other things a client that is cut off
// again and again would give up, as it is meant to.
class Faults {
 public:
  Faults(FaultyLink* link, std::unique_ptr<ServerProcess> server, const Progress* progress)
      : link_(link), server_(std::move(server)), progress_(progress) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Faults() {
    ending_ = true;
    thread_.join();
  }

  // A client that has had this many answers goes on once there were as many faults as are due by
  // then: a fast machine would be done before anything happened.
  void Await(int answered) const {
    while (IsAhead(answered)) Pause(1);
  }

  int count() const { return count_; }
  int servers() const { return servers_; }

 private:
  void Run() {
    std::mt19937 random(1);
    while (!ending_) {
      Pause(10 + random() % 60);
      switch (count_ % 5) {
        case 0:
        case 1:
          link_->Cut();
          break;
        case 3:
          link_->Stall(true);
          Pause(5 + random() % 40);
          link_->Stall(false);
          break;
        case 2:
          ReplaceServer(random() % 2 == 0 ? SIGTERM : SIGKILL);
          break;
        default:
          server_->Signal(SIGSTOP);
          Pause(5 + random() % 40);
          server_->Signal(SIGCONT);
      }
      ++count_;
      WaitForProgress();
    }
  }

  // The new one knows nothing of the sessions.
  void ReplaceServer(int signal) {
    auto next = std::make_unique<ServerProcess>();
    link_->Redirect(next->address());
    server_->Signal(signal);
    server_->Wait();
    server_ = std::move(next);
    ++servers_;
  }

  void WaitForProgress() const {
    for (const std::atomic<int>& client : *progress_) {
      // As many outcomes may have arrived before the fault.
      const int enough = std::min(client + kAhead + 1, kSteps);
      while (!ending_ && client < enough && !IsAhead(client)) Pause(1);
    }
  }
  bool IsAhead(int answered) const { return count_ < answered * int64_t{kLeastFaults} / kSteps; }

  static void Pause(unsigned ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

  FaultyLink* const link_;
  std::unique_ptr<ServerProcess> server_;
  const Progress* const progress_;
  std::atomic<bool> ending_{false};
  std::atomic<int> count_{0};
  std::atomic<int> servers_{1};
  std::thread thread_;
};

TEST(LedgerTest, EveryStepHasOneOutcomeInOrderWithTheSameBitsUnderFaults) {
  auto server = std::make_unique<ServerProcess>();
  FaultyLink link(server->address());
  std::vector<Ledger> ledgers(kClients);
  int faults = 0;
  int servers = 0;
  {
    Progress progress{};
    const Faults chaos(&link, std::move(server), &progress);
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&, i] {
        const auto client = Connect(LanguageOf(i), link.address(),
                                    {.connect_timeout = kPatience, .reconnect_within = kPatience});
        if (!client) return;
        ledgers[i] = DriveSession(client->get(), i,
                                  {.more = [](int sent) { return sent < kSteps; },
                                   .after =
                                       [&, i](int answered) {
                                         progress[i] = answered;
                                         chaos.Await(answered);
                                       }});
      });
    }
    for (std::thread& client : clients) client.join();
    faults = chaos.count();
    servers = chaos.servers();
  }
  for (const Ledger& ledger : ledgers) {
    EXPECT_EQ(ledger.answered, kSteps);
    EXPECT_EQ(ledger.solved, kSteps - kSteps / 97);
    EXPECT_THAT(ledger.violations, testing::IsEmpty());
  }
  // The proof is worth something only if something happened.
  EXPECT_GE(faults, kLeastFaults);
  EXPECT_GT(servers, 1);
  EXPECT_GT(link.connections(), kClients);
  RecordProperty("faults", faults);
  RecordProperty("servers", servers);
  RecordProperty("connections", link.connections());
}

}  // namespace
}  // namespace sap::test
