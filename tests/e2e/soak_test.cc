// Clients that come, do all there is to do, and go, some of them without a word: they leave nothing
// behind, and memory that was taken for the first ones serves the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
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

// Memory is compared over several stretches, and the middle one counts: a leak is in all of them,
// while a meeting of more calls than ever before, which can take 10 MB at once, is in one or two.
// On a busy machine it is in more of them, so that in a normal run one client comes after the
// other. That sees a leak of more than 12 KB per visit, a full run one of 1/3 KB.
constexpr int kStretches = 5;
const int kClients = IsFullProof() ? 4 : 1;
const int kRounds = IsFullProof() ? 800 : 80;
const int kWarmUpRounds = IsFullProof() ? 800 : 300;
constexpr double kGrowth_MB = 1;

// With one storage for all threads memory reaches its level within some hundred visits; with one
// for each, as malloc has it by default, that takes a thousand and more.
const std::vector<std::string> kOneStorage{"/usr/bin/env",
                                           "GLIBC_TUNABLES=glibc.malloc.arena_max=1"};

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
  const ServerProcess server({}, kOneStorage);
  Rounds(server, kWarmUpRounds);
  const Usage before = UsageOf(server.pid());
  std::array<double, kStretches> growth_MB;
  double memory_MB = before.memory_MB;
  for (double& growth : growth_MB) {
    Rounds(server, kRounds);
    growth = UsageOf(server.pid()).memory_MB - memory_MB;
    memory_MB += growth;
    std::printf("%.1f MB, %+.2f MB\n", memory_MB, growth);
  }
  std::sort(growth_MB.begin(), growth_MB.end());
  EXPECT_LE(growth_MB[kStretches / 2], kGrowth_MB);
  // What the last visitors held is released in some time.
  Usage after;
  Await([&] {
    after = UsageOf(server.pid());
    return after.descriptors <= before.descriptors + 2 && after.threads <= before.threads + 2;
  });
  EXPECT_LE(after.descriptors, before.descriptors + 2);
  EXPECT_LE(after.threads, before.threads + 2);
}

}  // namespace
}  // namespace sap::test
