// Attacks on a real server, each while a well-behaved client calls. Whatever the attackers do, with
// a token or without: the other client's answers come and have the right bits, the server's memory
// stays below a bound, and its log does not fill the disk. Latencies are printed, not asserted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <ostream>
#include <span>
#include <thread>

#include "tests/e2e/hostile/attacked_server.h"
#include "tests/e2e/hostile/attacks.h"
#include "tests/e2e/hostile/requests.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"

namespace sap::test::hostile {
namespace {

using Clock = std::chrono::steady_clock;

// Visits are made for a time that lies between these, and at least as many as kVisits in it.
const size_t kVisits = IsFullProof() ? 2000 : 200;
const std::chrono::milliseconds kShortest{IsFullProof() ? 3000 : 300};
const std::chrono::milliseconds kLongest{IsFullProof() ? 15'000 : 2500};

// Whether so many visits in that time are enough.
bool Suffice(size_t visits, Clock::duration time) {
  return time > kLongest || (time > kShortest && visits >= kVisits);
}

// An attack, and who is there meanwhile.
struct Case {
  Attack attack;
  Language neighbour;

  std::string name() const { return attack.name + Name(neighbour); }
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.name(); }

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name(); }

// Pairs each attack with neighbours of all languages at length, else with one: they take turns.
std::vector<Case> WithNeighbours(const std::vector<Attack>& attacks) {
  std::vector<Case> cases;
  for (size_t i = 0; i < attacks.size(); ++i) {
    for (const Language language : Languages()) {
      if (IsFullProof() || language == LanguageOf(i)) cases.push_back({attacks[i], language});
    }
  }
  return cases;
}

// The latency that this share of them stays below.
double Quantile(std::span<const double> latencies, double share) {
  if (latencies.empty()) return std::nan("");
  std::vector<double> sorted(latencies.begin(), latencies.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

// Visits during an attack. The first ones are made while it gets into position.
struct VisitsBeside {
  Visits visits;
  size_t before_position{0};

  std::span<const double> latencies_s() const {
    return std::span(visits.latencies_s).subspan(before_position);
  }
};

VisitsBeside VisitBeside(const Attack& attack, const Target& target, Siege* siege,
                         Neighbour* neighbour) {
  std::atomic<bool> in_position{false};
  std::thread attacker([&] {
    // On a network attackers have processors of their own; here they leave them to the others.
    // Threads that they start inherit it.
    EXPECT_NE(nice(10), -1);
    attack.begin(target, siege);
    in_position = true;
  });
  VisitsBeside beside;
  std::optional<Clock::time_point> since;
  beside.visits = VisitUntil(neighbour, attack.visit, [&](size_t count) {
    if (!in_position || !since) {
      beside.before_position = count;
      if (in_position) since = Clock::now();
      return false;
    }
    return Suffice(count - beside.before_position, Clock::now() - *since);
  });
  beside.before_position = std::min(beside.before_position, beside.visits.latencies_s.size());
  attacker.join();
  return beside;
}

void PrintLine(const std::string& name, const Visits& alone, const VisitsBeside& beside,
               const std::string& costs) {
  const double share = kVisits >= 1000 ? 0.99 : 0.95;
  const auto print = [](double before_s, double after_s) {
    std::printf(" | %8.2f %9.2f %7.1f", 1e3 * before_s, 1e3 * after_s, after_s / before_s);
  };
  std::printf("| %-45s %s", name.c_str(), costs.c_str());
  for (const double q : {0.5, share}) {
    print(Quantile(alone.latencies_s, q), Quantile(beside.latencies_s(), q));
  }
  print(Quantile(alone.latencies_s, 1), Quantile(beside.visits.latencies_s, 1));
  std::printf(" |\n");
}

std::string Costs(double memory_MB, double log_kB) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "| %6.0f MB %8.1f kB", memory_MB, log_kB);
  return text.data();
}

// Connections that break are errors of a call here, and there may be thousands of them.
void PrepareProcess() {
  std::signal(SIGPIPE, SIG_IGN);
  rlimit descriptors{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  descriptors.rlim_cur = descriptors.rlim_max;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
}

void Withstand(const Case& of, const std::string& attacker, Front front) {
  PrepareProcess();
  const Attack& attack = of.attack;
  const AttackedServer server(attack.flags, front,
                              attack.by_address ? Identity::kAddress : Identity::kToken);
  Neighbour neighbour(server.As("neighbour"), of.neighbour);
  const auto begin = Clock::now();
  const Visits alone = VisitUntil(&neighbour, attack.visit, [&](size_t count) {
    return count > 0 && Suffice(count, Clock::now() - begin);
  });
  ASSERT_THAT(alone.failures, testing::IsEmpty());

  server.ForgetPeak();
  const double memory_MB = server.Memory_MB();
  const double log_kB = server.Log_kB();
  {
    Siege siege;
    const VisitsBeside beside = VisitBeside(attack, server.As(attacker), &siege, &neighbour);
    EXPECT_THAT(beside.visits.failures, testing::IsEmpty());
    EXPECT_GT(siege.count(), 0) << "there was no attack";
    const double grown_MB = server.PeakMemory_MB() - memory_MB;
    const double logged_kB = server.Log_kB() - log_kB;
    EXPECT_LE(grown_MB, attack.memory_MB);
    EXPECT_LE(logged_kB, attack.log_kB);
    EXPECT_LE(Quantile(beside.latencies_s(), 0.5), attack.median_s);
    PrintLine(of.name(), alone, beside, Costs(grown_MB, logged_kB));
  }
  if (testing::Test::HasFailure()) return;  // the server may be gone
  // New clients are served as before.
  Neighbour next(server.As("neighbour"), of.neighbour);
  EXPECT_EQ((next.*attack.visit)(), "");
}

class StrangersTest : public testing::TestWithParam<Case> {};

TEST_P(StrangersTest, DoNoHarm) { Withstand(GetParam(), "", Front::kNone); }

INSTANTIATE_TEST_SUITE_P(HostileTest, StrangersTest,
                         testing::ValuesIn(WithNeighbours(AttacksByStrangers())), NameOf);

class StrangersAtTheProxyTest : public testing::TestWithParam<Case> {};

TEST_P(StrangersAtTheProxyTest, DoNoHarm) { Withstand(GetParam(), "", Front::kProxy); }

INSTANTIATE_TEST_SUITE_P(HostileTest, StrangersAtTheProxyTest,
                         testing::ValuesIn(WithNeighbours(AttacksThroughTheProxy())), NameOf);

class ClientsTest : public testing::TestWithParam<Case> {};

TEST_P(ClientsTest, TakeNothingFromOthers) { Withstand(GetParam(), "attacker", Front::kNone); }

INSTANTIATE_TEST_SUITE_P(HostileTest, ClientsTest,
                         testing::ValuesIn(WithNeighbours(AttacksByClients())), NameOf);

class ClientsAtTheProxyTest : public testing::TestWithParam<Case> {};

TEST_P(ClientsAtTheProxyTest, TakeNothingFromOthers) {
  Withstand(GetParam(), "attacker", Front::kProxy);
}

INSTANTIATE_TEST_SUITE_P(HostileTest, ClientsAtTheProxyTest,
                         testing::ValuesIn(WithNeighbours(AttacksByClientsThroughTheProxy())),
                         NameOf);

// Six solves without an end come to an idle server, before its threads are awake. The neighbour
// waits for none of them.
TEST(BurstTest, LeavesAThreadToOthers) {
  PrepareProcess();
  const AttackedServer server({"--inline-below-us", "0"}, Front::kNone);
  Neighbour neighbour(server.As("neighbour"), Language::kCpp);
  const Target attacker = server.As("attacker");
  const grpc::ByteBuffer message = ToBuffer(EndlessRequest());
  const int bursts = IsFullProof() ? 20 : 3;
  for (int burst = 0; burst < bursts; ++burst) {
    Siege siege;
    const auto channel = OpenChannel(attacker);
    for (int i = 0; i < 6; ++i) {
      siege.Hold(std::make_shared<HeldCall>(attacker, channel, kSolve, message));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(neighbour.SolveQueued(), "") << "burst " << burst;
  }
}

// A call with which every server dies that gets it, by mistake or by malice, ends two of them.
TEST(DeadlyCallTest, EndsTwoServersOfAList) {
  constexpr int kServers = 4;
  std::vector<std::unique_ptr<AttackedServer>> servers;
  std::string list;
  for (int i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<AttackedServer>(std::vector<std::string>(), Front::kNone));
    if (i > 0) list += ',';
    list += servers.back()->As("attacker").address;
  }
  auto client = client::Client::Connect(list, OptionsFor(servers[0]->As("attacker")));
  ASSERT_TRUE(client.has_value()) << client.error().message;
  std::atomic<int> killed{0};
  const std::jthread reaper([&](const std::stop_token& stop) {
    std::vector<const AttackedServer*> alive;
    for (const auto& server : servers) alive.push_back(server.get());
    const auto dies = [&](const AttackedServer* server) {
      const std::string metrics = HttpGet(server->As("").metrics_address, "/metrics");
      if (metrics.find("\nsap_calls_held 1") == std::string::npos) return false;
      server->Kill();
      ++killed;
      return true;
    };
    while (!stop.stop_requested()) std::erase_if(alive, dies);
  });
  client::SolveOptions options;
  options.deadline = kHangLimit;
  options.solver.relative_tolerance = options.solver.absolute_speed_tolerance = 0;
  options.solver.max_iterations = 10'000;
  options.solver.newton = NewtonMethod::kGaussSeidel;
  const auto solution = client->Solve(SphereBlock(kEndlessBlock), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, client::ErrorCode::kUnavailable) << solution.error().message;
  EXPECT_EQ(solution.error().lost_attempts, 2);
  EXPECT_EQ(killed, 2);
}

// The session of a client whose token is taken out of the file ends, although it never pauses.
TEST(RevokedTokenTest, EndsTheOpenSession) {
  const AttackedServer server({}, Front::kNone);
  client::Client client = server.Connect("attacker");
  auto session = client.OpenSession();
  ASSERT_TRUE(session.has_value());
  ASSERT_TRUE(session->Step(SmallProblem()).has_value());
  server.RevokeAllBut("neighbour");
  const auto until = Clock::now() + kHangLimit;
  auto step = session->Step(SmallProblem());
  while (step.has_value() && Clock::now() < until) step = session->Step(SmallProblem());
  EXPECT_FALSE(step.has_value()) << "steps are still solved";
}

}  // namespace
}  // namespace sap::test::hostile
