#include "client/cpp/split/split_solver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "client/cpp/client.h"
#include "tests/support/no_new_threads.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::client {
namespace {

using test::Bits;
using test::Stacks;

// The engine of this process, with its calls counted, which can fail them. It tells of one thread.
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
    info.solver_threads = 1;
    done(info);
  }

  // Outputs that a split does not ask for.
  void SolveBatch(Problems, const SolveOptions&, Timeout, Where,
                  Done<std::vector<SolveOutcome>>) override {
    ADD_FAILURE();
  }
  void StreamBatch(Problems, const SolveOptions&, Timeout, Client::BatchSink, Where,
                   Done<Status>) override {
    ADD_FAILURE();
  }
  void Differentiate(const DifferentiateView&, Timeout, Where, Done<DerivativesOutcome>) override {
    ADD_FAILURE();
  }
  void DifferentiateBatch(std::span<const DifferentiateView>, const BatchLimits&, Timeout, Where,
                          Done<std::vector<DerivativesOutcome>>) override {
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
  Status Solve(const v1::SolveRequest& request, BuildPin* pin,
               v1::SolveResponse* response) override {
    return engine_->Solve(request, pin, response);
  }
  Status Differentiate(const v1::DifferentiateRequest& request,
                       v1::DifferentiateResponse* response) override {
    return engine_->Differentiate(request, response);
  }

  std::atomic<int> solves{0};
  std::atomic<int> infos{0};
  std::chrono::milliseconds time_of_info{0};
  Timeout deadline_of_info;
  std::vector<Timeout> deadlines;  // of the shards
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
    return SplitSolver(address).TrySplit(&backend_, ViewOf(scene_), options, servers, std::nullopt);
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
  SplitSolver solver("a:1,b:2");
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
  SplitSolver solver("a:1,b:2");
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
