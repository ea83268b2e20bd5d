// Clients that come, do all there is to do, and go, some of them without a word: they leave nothing
// behind, and memory that was taken for the first ones serves the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

// A normal run sees a leak of more than 17 KB per visit, a full one 1/2 KB: what malloc keeps
// differs by some 2 MB from run to run, and by more where a run is long.
const int kRounds = IsFullProof() ? 4000 : 60;
// Each thread that serves has storage of its own in malloc, which fills up over the first thousand
// visits or so, by some 13 MB in all and ever more slowly; a thread that only helps at times takes
// twice as many.
const int kWarmUpRounds = std::max(480, kRounds / 4);
constexpr int kClients = 4;
const double kGrowth_MB = IsFullProof() ? 8 : 4;

client::Problem SmallProblem() { return *client::FromMessage(MixedProblem()); }

struct Usage {
  double memory_MB{0};
  long descriptors{0};
  long threads{0};
};

Usage UsageOf(pid_t pid) {
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  const auto count = [&](const char* name) {
    return static_cast<long>(
        std::distance(std::filesystem::directory_iterator(process / name), {}));
  };
  Usage usage{.descriptors = count("fd"), .threads = count("task")};
  std::ifstream status(process / "status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> usage.memory_MB;
  }
  usage.memory_MB /= 1024;
  return usage;
}

// One client's visit. Every fourth goes without closing its session.
void Visit(const ServerProcess& server, int round) {
  client::Client client = server.Connect();
  auto session = client.OpenSession();
  ASSERT_TRUE(session.has_value()) << session.error().message;
  for (int step = 0; step < 20; ++step) {
    EXPECT_TRUE(session->Step(SmallProblem()).has_value());
  }
  if (round % 4 != 0) {
    EXPECT_TRUE(session->Close().has_value());
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(client.Solve(SmallProblem()).has_value());
  const std::vector<client::Problem> batch(1 + round % 7, SmallProblem());
  for (const auto& outcome : client.SolveBatch(batch)) EXPECT_TRUE(outcome.has_value());
  // Large enough for the arena, and given up long before its end.
  client::SolveOptions options;
  options.time_budget = std::chrono::milliseconds(2);
  EXPECT_TRUE(client.Solve(SphereBlock(4 + round % 6), options).has_value());
  client::Problem faulty = SmallProblem();
  faulty.time_step = -1;
  EXPECT_FALSE(client.Solve(faulty).has_value());
}

void Rounds(const ServerProcess& server, int rounds) {
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&server, rounds, i] {
      for (int round = 0; round < rounds; ++round) Visit(server, round + i);
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(SoakTest, WhoeverComesAndGoesLeavesNothingBehind) {
  const ServerProcess server;
  Rounds(server, kWarmUpRounds);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const Usage before = UsageOf(server.pid());
  Rounds(server, kRounds);
  // What the last visitors held is released in some time.
  Usage after;
  Await([&] {
    after = UsageOf(server.pid());
    return after.memory_MB <= before.memory_MB + kGrowth_MB &&
           after.descriptors <= before.descriptors + 2 && after.threads <= before.threads + 2;
  });
  RecordProperty("memory_MB_before", std::to_string(before.memory_MB));
  RecordProperty("memory_MB_after", std::to_string(after.memory_MB));
  EXPECT_LE(after.memory_MB, before.memory_MB + kGrowth_MB);
  EXPECT_LE(after.descriptors, before.descriptors + 2);
  EXPECT_LE(after.threads, before.threads + 2);
  std::printf("%.1f MB, %ld descriptors, %ld threads; then %.1f MB, %ld, %ld\n", before.memory_MB,
              before.descriptors, before.threads, after.memory_MB, after.descriptors,
              after.threads);
}

}  // namespace
}  // namespace sap::test
