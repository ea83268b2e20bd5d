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

// An engine of this process that counts the calls and can fail them. It tells of one thread.
class CountedTransport final : public Transport {
 public:
  Status Solve(const v1::SolveRequest& request, Timeout deadline,
               v1::SolveResponse* response) override {
    const int call = solves++;
    {
      const std::lock_guard lock(mutex_);
      deadlines.push_back(deadline);
    }
    if (failure && call == failed_call) return tl::unexpected(*failure);
    return engine_->Solve(request, deadline, response);
  }
  Status Info(Timeout deadline, v1::GetServerInfoResponse* response) override {
    ++infos;
    deadline_of_info = deadline;
    std::this_thread::sleep_for(time_of_info);
    if (!answers_info) return tl::unexpected(Error{ErrorCode::kUnavailable, "no server", ""});
    response->set_solver_threads(1);
    return {};
  }
  Status SolveBatch(const v1::SolveBatchRequest& request, Timeout deadline,
                    v1::SolveBatchResponse* response) override {
    return engine_->SolveBatch(request, deadline, response);
  }
  Status StreamBatch(const v1::StreamBatchRequest& request, Timeout deadline,
                     const BatchSink& sink) override {
    return engine_->StreamBatch(request, deadline, sink);
  }
  Status Differentiate(const v1::DifferentiateRequest& request, Timeout deadline,
                       v1::DifferentiateResponse* response) override {
    return engine_->Differentiate(request, deadline, response);
  }
  Status DifferentiateBatch(const v1::DifferentiateBatchRequest& request, Timeout deadline,
                            v1::DifferentiateBatchResponse* response) override {
    return engine_->DifferentiateBatch(request, deadline, response);
  }
  tl::expected<std::unique_ptr<SessionStream>, Error> OpenSession(
      const v1::SolveSessionRequest& request, Timeout deadline) override {
    return engine_->OpenSession(request, deadline);
  }
  tl::expected<bool, Error> Health() override { return engine_->Health(); }

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
  const std::unique_ptr<Transport> engine_ = Embed(/*threads=*/2);
};

class SplitSolverTest : public testing::Test {
 protected:
  std::optional<tl::expected<Solution, Error>> Solve(const std::string& address, int servers,
                                                     const SolveOptions& options = {}) {
    return SplitSolver(address).Solve(&transport_, scene_, options, servers, std::nullopt);
  }

  Problem scene_ = Stacks(60, 12);
  CountedTransport transport_;
};

TEST_F(SplitSolverTest, EveryServerOfAListGetsACall) {
  const auto solution = Solve("a:1,b:2,c:3", kServersOfAddress);
  ASSERT_TRUE(solution.has_value());
  ASSERT_TRUE(solution->has_value()) << solution->error().message;
  EXPECT_EQ(transport_.solves, 3);
  auto embedded = Client::Connect("embedded:");
  EXPECT_EQ(Bits(**solution), Bits(*embedded->Solve(scene_)));
  EXPECT_GT((*solution)->timings.solve_s, 0);
}

TEST_F(SplitSolverTest, ANumberOfServersCountsBehindAProxy) {
  EXPECT_TRUE(Solve("proxy:1", 5).has_value());
  EXPECT_EQ(transport_.solves, 5);
}

TEST_F(SplitSolverTest, OneServerGetsTheScene) {
  EXPECT_FALSE(Solve("a:1", kServersOfAddress).has_value());
  EXPECT_FALSE(Solve("unix:/run/a,b", kServersOfAddress).has_value());
  EXPECT_FALSE(Solve("a:1,b:2", 1).has_value());
  EXPECT_FALSE(Solve("embedded:", 3).has_value());
  EXPECT_EQ(transport_.solves, 0);
  EXPECT_EQ(transport_.infos, 0);
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
  EXPECT_EQ(transport_.solves, 0);
}

TEST_F(SplitSolverTest, AProblemThatCannotBeTakenApartStaysWhole) {
  scene_.body_contacts.body_a.back() = 100'000;
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  scene_.body_contacts.body_a.back() = 0;
  scene_.body_contacts.law.adhesion = {1.0};
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  EXPECT_EQ(transport_.solves, 0);
}

// The shards number its fields otherwise.
TEST_F(SplitSolverTest, AProblemThatBreaksARuleIsAskedForAsAWhole) {
  scene_.body_contacts.law.friction.back() = -0.3;
  EXPECT_FALSE(Solve("a:1,b:2", 2).has_value());
  EXPECT_EQ(transport_.solves, 2);
}

TEST_F(SplitSolverTest, WhatOneShardIsRefusedForIsAskedOfTheWhole) {
  transport_.failed_call = 1;
  transport_.failure = Error{ErrorCode::kInvalidArgument, "bodies.mass[3] ...", "bodies.mass[3]"};
  EXPECT_FALSE(Solve("a:1,b:2,c:3", kServersOfAddress).has_value());
}

TEST_F(SplitSolverTest, AShardThatFailsIsTheErrorOfTheCall) {
  transport_.failed_call = 1;
  transport_.failure = Error{ErrorCode::kResourceExhausted, "too many calls", "", "CALLS"};
  const auto solution = Solve("a:1,b:2,c:3", kServersOfAddress);
  ASSERT_TRUE(solution.has_value());
  ASSERT_FALSE(solution->has_value());
  EXPECT_EQ(solution->error().reason, "CALLS");
}

TEST_F(SplitSolverTest, TheThreadsOfAServerAreAskedForOnce) {
  SplitSolver solver("a:1,b:2");
  transport_.answers_info = false;
  EXPECT_FALSE(solver.Solve(&transport_, scene_, {}, 2, std::nullopt).has_value());
  transport_.answers_info = true;
  EXPECT_TRUE(solver.Solve(&transport_, scene_, {}, 2, std::nullopt).has_value());
  EXPECT_TRUE(solver.Solve(&transport_, scene_, {}, 2, std::nullopt).has_value());
  EXPECT_EQ(transport_.infos, 2);
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
  transport_.time_of_info = std::chrono::milliseconds(20);
  constexpr std::chrono::hours kDeadline{1};
  const auto solution = solver.Solve(&transport_, scene_, {}, 2, kDeadline);
  ASSERT_TRUE(solution.has_value());
  ASSERT_TRUE(solution->has_value()) << solution->error().message;
  EXPECT_EQ(transport_.deadline_of_info, kDeadline);
  EXPECT_EQ(transport_.deadlines.size(), 2u);
  for (const Transport::Timeout& deadline : transport_.deadlines) {
    EXPECT_LE(deadline, kDeadline - transport_.time_of_info);
    EXPECT_GT(deadline, std::chrono::nanoseconds(0));
  }
}

// Over gRPC, one server in the place of several.
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
