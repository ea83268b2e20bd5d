#include "client/cpp/split/split_solver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>

#include "client/cpp/client.h"
#include "client/cpp/transport/server_identity.h"
#include "tests/support/await.h"
#include "tests/support/no_new_threads.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::client {
namespace {

using test::Bits;
using test::Stacks;

// The engine of this process, with its calls counted, which can fail them.
class CountedBackend final : public Backend {
 public:
  void Solve(const ContactProblemView& problem, const SolveOptions& options, Timeout deadline,
             Where where, BuildPin* pin, Done<SolveOutcome> done) override {
    const int call = solves++;
    {
      const std::lock_guard lock(mutex_);
      deadlines.push_back(deadline);
    }
    if (failure && call == failed_call) return done(tl::unexpected(*failure));
    engine_->Solve(problem, options, deadline, where, pin, std::move(done));
  }
  void Info(const CallOptions&, Timeout deadline, Where,
            Done<tl::expected<ServerInfo, Error>> done) override {
    ++infos;
    deadline_of_info = deadline;
    std::this_thread::sleep_for(time_of_info);
    if (!answers_info) return done(tl::unexpected(Error{ErrorCode::kUnavailable, "no server", ""}));
    ServerInfo info;
    info.solver_threads = threads;
    done(info);
  }

  // Outputs that a split does not ask for.
  void SolveBatch(Problems, const SolveOptions&, Timeout, Where,
                  Done<Outcomes<SolveOutcome>>) override {
    ADD_FAILURE();
  }
  void StreamBatch(Problems, const SolveOptions&, Timeout, BatchSink, Where,
                   Done<Status>) override {
    ADD_FAILURE();
  }
  void Differentiate(const DifferentiateView&, Timeout, Where, Done<DerivativesOutcome>) override {
    ADD_FAILURE();
  }
  void DifferentiateBatch(std::span<const DifferentiateView>, const BatchLimits&, Timeout, Where,
                          Done<Outcomes<DerivativesOutcome>>) override {
    ADD_FAILURE();
  }
  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(const SolveOptions& options,
                                                               const SessionOptions& of_session,
                                                               Timeout deadline) override {
    return engine_->OpenSession(options, of_session, deadline);
  }
  void Health(const CallOptions&, Where, Done<tl::expected<bool, Error>>) override {
    ADD_FAILURE();
  }

  std::atomic<int> solves{0};
  std::atomic<int> infos{0};
  std::chrono::milliseconds time_of_info{0};
  Timeout deadline_of_info;
  std::vector<Timeout> deadlines;  // of the shards
  uint32_t threads{1};             // that it tells of
  bool answers_info{true};
  int failed_call{0};
  std::optional<Error> failure;

 private:
  std::mutex mutex_;
  const std::unique_ptr<Backend> engine_ = EmbeddedBackend({.threads = 2});
};

class SplitSolverTest : public testing::Test {
 protected:
  std::optional<tl::expected<Solution, Error>> Solve(const std::string& address, int servers,
                                                     const SolveOptions& options = {}) {
    return SplitSolver(address, {})
        .TrySplit(&backend_, ViewOf(scene_), options, servers, std::nullopt);
  }

  Problem scene_ = Stacks(60, 12);
  CountedBackend backend_;
};

TEST_F(SplitSolverTest, EveryServerOfAListGetsACall) {
  const auto solution = Solve("a:1,b:2,c:3", kServersOfAddress);
  ASSERT_TRUE(solution.has_value());
  ASSERT_TRUE(solution->has_value()) << solution->error().message;
  EXPECT_EQ(backend_.solves, 3);
  auto embedded = Client::Connect("embedded:");
  EXPECT_EQ(Bits(**solution), Bits(*embedded->Solve(scene_)));
  EXPECT_GT((*solution)->timings.solve_s, 0);
}

TEST_F(SplitSolverTest, ANumberOfServersCountsBehindAProxy) {
  EXPECT_TRUE(Solve("proxy:1", 5).has_value());
  EXPECT_EQ(backend_.solves, 5);
}

TEST_F(SplitSolverTest, OneServerGetsTheScene) {
  EXPECT_FALSE(Solve("a:1", kServersOfAddress).has_value());
  EXPECT_FALSE(Solve("unix:/run/a,b", kServersOfAddress).has_value());
  EXPECT_FALSE(Solve("a:1,b:2", 1).has_value());
  EXPECT_FALSE(Solve("embedded:", 3).has_value());
  EXPECT_EQ(backend_.solves, 0);
  EXPECT_EQ(backend_.infos, 0);
}

TEST_F(SplitSolverTest, ASceneThatGainsNothingStaysWhole) {
  SolveOptions as_one;
  as_one.solver.islands = false;
  EXPECT_FALSE(Solve("a:1,b:2", 2, as_one).has_value());
  scene_ = Stacks(1, 100);
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  scene_ = Stacks(20, 1);
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  scene_ = Stacks(0, 0);
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  EXPECT_EQ(backend_.solves, 0);
}

TEST_F(SplitSolverTest, AProblemThatCannotBeTakenApartStaysWhole) {
  scene_.body_contacts.body_a.back() = 100'000;
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  scene_.body_contacts.body_a.back() = 0;
  scene_.body_contacts.law.adhesion = {1.0};
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  EXPECT_EQ(backend_.solves, 0);
}

// The shards number its fields otherwise.
TEST_F(SplitSolverTest, AProblemThatBreaksARuleIsAskedForAsAWhole) {
  scene_.body_contacts.law.friction.back() = -0.3;
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  EXPECT_EQ(backend_.solves, 2);
}

TEST_F(SplitSolverTest, WhatOneShardIsRefusedForIsAskedOfTheWhole) {
  backend_.failed_call = 1;
  backend_.failure = Error{ErrorCode::kInvalidArgument, "bodies.mass[3] ...", "bodies.mass[3]"};
  EXPECT_FALSE(Solve("a:1,b:2,c:3", kServersOfAddress).has_value());
}

// Servers that are being upgraded may have two builds: one of them solves the whole.
TEST_F(SplitSolverTest, WhatServersOfTwoBuildsAnsweredIsAskedOfTheWhole) {
  BuildPin pin("0.2.0 x86-64-v3");
  backend_.failed_call = 1;
  backend_.failure = pin.Take({.build = "0.3.0 x86-64-v3", .boot_id = "aa"}).error();
  EXPECT_FALSE(Solve("a:1,b:2,c:3", kServersOfAddress).has_value());
}

TEST_F(SplitSolverTest, AShardThatFailsIsTheErrorOfTheCall) {
  backend_.failed_call = 1;
  backend_.failure = Error{ErrorCode::kResourceExhausted, "too many calls", "", "CALLS"};
  const auto solution = Solve("a:1,b:2,c:3", kServersOfAddress);
  ASSERT_TRUE(solution.has_value());
  ASSERT_FALSE(solution->has_value());
  EXPECT_EQ(solution->error().reason, "CALLS");
}

TEST_F(SplitSolverTest, TheThreadsOfAServerAreAskedForOnce) {
  SplitSolver solver("a:1,b:2", {});
  backend_.answers_info = false;
  EXPECT_FALSE(solver.TrySplit(&backend_, ViewOf(scene_), {}, 2, std::nullopt).has_value());
  backend_.answers_info = true;
  EXPECT_TRUE(solver.TrySplit(&backend_, ViewOf(scene_), {}, 2, std::nullopt).has_value());
  EXPECT_TRUE(solver.TrySplit(&backend_, ViewOf(scene_), {}, 2, std::nullopt).has_value());
  EXPECT_EQ(backend_.infos, 2);
}

TEST_F(SplitSolverTest, AtTheLimitOfThreadsTheShardsAreSolvedOneAfterTheOther) {
  auto embedded = Client::Connect("embedded:");
  const auto whole = embedded->Solve(scene_);
  ASSERT_TRUE(Solve("a:1,b:2,c:3", 3).has_value());  // the engine has its threads
  const test::NoNewThreads no_new_threads;
  const auto solution = Solve("a:1,b:2,c:3", 3);
  ASSERT_TRUE(solution.has_value());
  ASSERT_TRUE(solution->has_value()) << solution->error().message;
  EXPECT_EQ(Bits(**solution), Bits(*whole));
}

TEST_F(SplitSolverTest, TheDeadlineCoversWhatComesBeforeTheShards) {
  SplitSolver solver("a:1,b:2", {});
  backend_.time_of_info = std::chrono::milliseconds(20);
  constexpr std::chrono::hours kDeadline{1};
  const auto solution = solver.TrySplit(&backend_, ViewOf(scene_), {}, 2, kDeadline);
  ASSERT_TRUE(solution.has_value());
  ASSERT_TRUE(solution->has_value()) << solution->error().message;
  EXPECT_EQ(backend_.deadline_of_info, kDeadline);
  EXPECT_EQ(backend_.deadlines.size(), 2u);
  for (const Timeout& deadline : backend_.deadlines) {
    EXPECT_LE(deadline, kDeadline - backend_.time_of_info);
    EXPECT_GT(deadline, std::chrono::nanoseconds(0));
  }
}

TEST(DealInOrderTest, EachPartHasConsecutiveIslandsOfAboutEqualTime) {
  const std::vector<double> times(100, 0.5);
  const auto dealt = DealInOrder(times, 4);
  ASSERT_EQ(dealt.size(), 4u);
  int next = 0;
  for (const std::vector<int>& part : dealt) {
    EXPECT_EQ(part.size(), 25u);
    for (const int island : part) EXPECT_EQ(island, next++);
  }
}

TEST(DealInOrderTest, EveryIslandIsInOnePartAndNoPartIsEmpty) {
  const std::vector<double> times{1, 1, 90, 1, 1, 1, 1, 4};
  for (int parts = 1; parts <= 10; ++parts) {
    int next = 0;
    for (const std::vector<int>& part : DealInOrder(times, parts)) {
      EXPECT_FALSE(part.empty());
      for (const int island : part) EXPECT_EQ(island, next++);
    }
    EXPECT_EQ(next, 8);
  }
  EXPECT_TRUE(DealInOrder({}, 3).empty());
}

// The first part goes to the counted backend, the others over connections to a server.
class SceneConnectionsTest : public testing::Test {
 protected:
  static ConnectOptions UpTo(int connections) { return {.scene_connections = connections}; }

  test::Server server_{"tcp:", test::ConfigWithThreads(2)};
  const Problem scene_ = Stacks(1300, 12);  // more than 4 MiB
  CountedBackend backend_;
};

TEST_F(SceneConnectionsTest, ALargeSceneHasTheSameBitsOverOneTwoAndFour) {
  const auto whole = server_.Connect().Solve(scene_);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  backend_.threads = 4;
  for (const int connections : {2, 4}) {
    backend_.solves = 0;
    SplitSolver solver(server_.address(), UpTo(connections));
    const auto divided = solver.TrySplit(&backend_, ViewOf(scene_), {}, 1, std::nullopt);
    ASSERT_TRUE(divided.has_value());
    ASSERT_TRUE(divided->has_value()) << divided->error().message;
    EXPECT_EQ(backend_.solves, 1);
    EXPECT_EQ(Bits(**divided), Bits(*whole));
  }
}

TEST_F(SceneConnectionsTest, AClientDividesByOneLineHereAndInTheBackground) {
  auto client = Client::Connect(server_.address(), UpTo(4));
  ASSERT_TRUE(client.has_value()) << client.error().message;
  const auto whole = server_.Connect().Solve(scene_);
  const auto divided = client->Solve(scene_);
  ASSERT_TRUE(divided.has_value()) << divided.error().message;
  EXPECT_EQ(Bits(*divided), Bits(*whole));
  std::promise<Client::SolveOutcome> arrived;
  client->StartSolve(ViewOf(scene_), {}, 1,
                     [&](Client::SolveOutcome outcome) { arrived.set_value(std::move(outcome)); });
  const auto later = arrived.get_future().get();
  ASSERT_TRUE(later.has_value()) << later.error().message;
  EXPECT_EQ(Bits(*later), Bits(*whole));
}

TEST_F(SceneConnectionsTest, AsManyAsTheSizeAndTheThreadsOfTheServerAreWorth) {
  const auto divide = [&](const Problem& scene, const std::string& address, int connections) {
    SplitSolver solver(address, UpTo(connections));
    return solver.TrySplit(&backend_, ViewOf(scene), {}, 1, std::nullopt).has_value();
  };
  const std::string address = server_.address();
  EXPECT_FALSE(divide(scene_, address, 4));  // one thread
  backend_.threads = 4;
  EXPECT_FALSE(divide(scene_, address, 1));
  EXPECT_FALSE(divide(scene_, "a:1,b:2", 4));
  EXPECT_FALSE(divide(scene_, "embedded:", 4));
  const int infos = backend_.infos;
  EXPECT_FALSE(divide(Stacks(60, 12), address, 4));  // below 1 MiB
  EXPECT_FALSE(divide(Stacks(0, 0), address, 4));
  EXPECT_EQ(backend_.infos, infos);
  EXPECT_EQ(backend_.solves, 0);
  EXPECT_TRUE(divide(scene_, address, 4));
}

// A whole scene is one call.
TEST_F(SceneConnectionsTest, AServerWithoutRoomForThePartsIsAskedForTheWhole) {
  backend_.threads = 4;
  backend_.failure = Error{ErrorCode::kResourceExhausted, "too many calls", "", "CALLS"};
  SplitSolver solver(server_.address(), UpTo(2));
  EXPECT_FALSE(solver.TrySplit(&backend_, ViewOf(scene_), {}, 1, std::nullopt).has_value());
}

TEST_F(SceneConnectionsTest, TheirNumberHasARange) {
  for (const int connections : {-1, 0, 65}) {
    const auto client = Client::Connect("embedded:", UpTo(connections));
    ASSERT_FALSE(client.has_value());
    EXPECT_EQ(client.error().field, "scene_connections");
  }
}

// Steps of a session and, in turn, of one over a single connection.
class DividedSessionTest : public SceneConnectionsTest {
 protected:
  DividedSessionTest() {
    scene_.bodies.body_id.resize(scene_.bodies.mass.size());
    std::iota(scene_.bodies.body_id.begin(), scene_.bodies.body_id.end(), 1);
  }

  static Session Open(Client* client, const SolveOptions& options = {},
                      const SessionOptions& of_session = {}) {
    auto session = client->OpenSession(options, of_session);
    EXPECT_TRUE(session.has_value()) << session.error().message;
    return std::move(*session);
  }
  static StepOutcome Step(Session* session, const Problem& problem,
                          const std::optional<SolveOptions>& options = std::nullopt) {
    EXPECT_TRUE(session->Send(problem, options).has_value());
    auto outcome = session->Receive();
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    return std::move(*outcome);
  }
  bool ServerHas(int sessions) {
    return test::Await([&] { return server_.handler()->num_sessions() == sessions; });
  }

  Problem scene_ = SceneConnectionsTest::scene_;
  Client client_ = server_.Connect(UpTo(2));
  Client over_one_ = server_.Connect();
};

TEST_F(DividedSessionTest, AStepHasTheBitsOfOneAtTheServer) {
  Session session = Open(&client_);
  Session expected = Open(&over_one_);
  for (int step = 0; step < 3; ++step) {
    scene_.bodies.free_motion_velocity[6 * step] += 0.1;
    const StepOutcome outcome = Step(&session, scene_);
    const StepOutcome as = Step(&expected, scene_);
    ASSERT_TRUE(outcome.solution.has_value()) << outcome.solution.error().message;
    EXPECT_EQ(outcome.warm_started, step > 0);
    EXPECT_EQ(outcome.warm_started, as.warm_started);
    EXPECT_EQ(Bits(*outcome.solution), Bits(*as.solution)) << step;
  }
  EXPECT_TRUE(ServerHas(1));  // the other one
}

TEST_F(DividedSessionTest, WhatIsNotAskedForIsNotReturnedAndTheNextStepStartsFromIt) {
  SolveOptions impulses;
  impulses.response_mask = {"impulse"};
  Session session = Open(&client_, impulses);
  Session expected = Open(&over_one_);
  const StepOutcome first = Step(&session, scene_);
  ASSERT_TRUE(first.solution.has_value());
  EXPECT_EQ(first.solution->impulse, Step(&expected, scene_).solution->impulse);
  EXPECT_TRUE(first.solution->velocity.empty());
  EXPECT_TRUE(first.solution->islands.empty());
  EXPECT_EQ(Bits(*Step(&session, scene_, SolveOptions()).solution),
            Bits(*Step(&expected, scene_).solution));
}

TEST_F(DividedSessionTest, AStepThatIsRefusedLeavesTheVelocities) {
  Session session = Open(&client_);
  Session expected = Open(&over_one_);
  Step(&session, scene_);
  Step(&expected, scene_);
  Problem wrong = scene_;
  wrong.bodies.mass.back() = -1;
  const StepOutcome refused = Step(&session, wrong);
  ASSERT_FALSE(refused.solution.has_value());
  EXPECT_EQ(refused.solution.error().field, "bodies.mass[15599]");
  EXPECT_EQ(Bits(*Step(&session, scene_).solution), Bits(*Step(&expected, scene_).solution));
  ASSERT_TRUE(session.Reset().has_value());
  EXPECT_FALSE(Step(&session, scene_).warm_started);
}

TEST_F(DividedSessionTest, ASessionThatBeginsSmallOrInTheBackgroundIsOneOfTheServer) {
  Session small = Open(&client_);
  Step(&small, Stacks(2, 3));
  Step(&small, scene_);
  EXPECT_TRUE(ServerHas(1));
  Session background = Open(&client_, {}, {.background = true});
  Step(&background, scene_);
  EXPECT_TRUE(ServerHas(2));
}

// Such a limit is for the writing of a step, as of sap_session_send.
TEST_F(DividedSessionTest, AStepIsSolvedWhereItMayNotBeWaitedForLonger) {
  Session session = Open(&client_);
  const WaitLimit at_once{.until = std::chrono::steady_clock::now()};
  ASSERT_TRUE(session.Send(ViewOf(scene_), std::nullopt, at_once).has_value());
  const auto outcome = session.Receive();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->solution.has_value()) << outcome->solution.error().message;
}

TEST_F(DividedSessionTest, ItEndsAtItsDeadline) {
  SolveOptions options;
  options.deadline = std::chrono::minutes(5);
  Session session = Open(&client_, options);
  EXPECT_TRUE(Step(&session, scene_).solution.has_value());
  options.deadline = std::chrono::milliseconds(50);
  Session late = Open(&client_, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const auto step = late.Step(scene_);
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(late.open());
}

// Over gRPC, one server in place of several.
class ClientSplitTest : public testing::Test {
 protected:
  const test::Server server_{"tcp:", test::ConfigWithThreads(1)};
  Client client_{server_.Connect()};
};

TEST_F(ClientSplitTest, ASceneInShardsHasTheBitsOfTheWhole) {
  const Problem scene = Stacks(60, 12);
  const auto whole = client_.Solve(scene);
  const auto split = client_.Solve(scene, {}, 3);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  ASSERT_TRUE(split.has_value()) << split.error().message;
  EXPECT_EQ(Bits(*split), Bits(*whole));
}

TEST_F(ClientSplitTest, ErrorsAreThoseOfTheWhole) {
  Problem scene = Stacks(60, 12);
  scene.body_contacts.law.stiffness[1000] = 0;
  const auto whole = client_.Solve(scene);
  const auto split = client_.Solve(scene, {}, 3);
  ASSERT_FALSE(split.has_value());
  EXPECT_EQ(split.error().message, whole.error().message);
  EXPECT_EQ(split.error().field, "body_contacts.stiffness[1000]");

  SolveOptions options;
  options.response_mask = {"speed"};
  const auto refused = client_.Solve(Stacks(60, 12), options, 3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "options.response_mask.paths[0]");
}

TEST_F(ClientSplitTest, ANegativeNumberOfServersIsRefused) {
  const auto solution = client_.Solve(Stacks(1, 1), {}, -2);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(solution.error().field, "servers");
}

TEST_F(ClientSplitTest, ADeadlineCountsForAllShards) {
  SolveOptions options;
  options.deadline = std::chrono::nanoseconds(1);
  const auto solution = client_.Solve(Stacks(60, 12), options, 3);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace sap::client
