
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "client/cpp/transport/message_conversion.h"
#include "solver/engine/solve_memory.h"
#include "solver/run/sharded_problem.h"
#include "tests/support/await.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/random_problem.h"
#include "tests/support/scenes.h"

namespace sap {
namespace {

// Waits for the outcome of a started call.
class Outcome {
 public:
  static void Done(void* context, const ServiceStatus& status) {
    Outcome* self = static_cast<Outcome*>(context);
    const std::lock_guard lock(self->mutex_);
    self->status_ = status;
    self->thread_ = std::this_thread::get_id();
    self->ready_.notify_all();
  }

  const ServiceStatus& Wait() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return status_.has_value(); });
    return *status_;
  }

  bool CameFrom(std::thread::id thread) {
    const std::lock_guard lock(mutex_);
    return status_.has_value() && thread_ == thread;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::optional<ServiceStatus> status_;
  std::thread::id thread_;
};

v1::SolveRequest Request(const v1::ContactProblem& problem) {
  v1::SolveRequest request;
  *request.mutable_problem() = problem;
  return request;
}

v1::SolveRequest BlockRequest(int count) {
  v1::SolveRequest request;
  client::ToMessage(test::SphereBlock(count), request.mutable_problem());
  return request;
}

std::string Bits(const v1::SolveResponse& response) {
  return response.solution().SerializeAsString();
}

ServerConfig Config(double inline_below_us) {
  ServerConfig config;
  config.threads = 2;
  config.inline_below_us = inline_below_us;
  return config;
}

// Where a problem is solved is a matter of its size and changes nothing in the answer.
TEST(RequestHandlerTest, InlineAndOnTheArenaGiveTheSameBits) {
  v1::SolveRequest request = Request(test::MixedProblem());
  request.mutable_options()->mutable_response_mask()->add_paths("velocity");
  request.mutable_options()->mutable_response_mask()->add_paths("impulse");
  test::BlockingHandler inline_handler(Config(1e6));
  test::BlockingHandler arena_handler(Config(0));
  v1::SolveResponse called, inlined, queued;
  ASSERT_TRUE(inline_handler.Solve(request, CallContext(), &called).has_value());

  Outcome first;
  inline_handler.Start(request, CallContext(), &inlined, Outcome::Done, &first);
  EXPECT_TRUE(first.CameFrom(std::this_thread::get_id()));
  ASSERT_TRUE(first.Wait().has_value());

  Outcome second;
  arena_handler.Start(request, CallContext(), &queued, Outcome::Done, &second);
  ASSERT_TRUE(second.Wait().has_value());
  EXPECT_FALSE(second.CameFrom(std::this_thread::get_id()));
  EXPECT_EQ(Bits(inlined), Bits(called));
  EXPECT_EQ(Bits(queued), Bits(called));
}

// With one thread the arena still has to answer without the help of the one that starts the call.
TEST(RequestHandlerTest, AnArenaOfOneThreadAnswersToo) {
  ServerConfig config = Config(0);
  config.threads = 1;
  test::BlockingHandler handler(config);
  const v1::SolveRequest request = Request(test::MixedProblem());
  v1::SolveResponse response;
  Outcome outcome;
  handler.Start(request, CallContext(), &response, Outcome::Done, &outcome);
  EXPECT_TRUE(outcome.Wait().has_value());
}

TEST(RequestHandlerTest, ManyCallsAtOnceAreAllAnsweredAlike) {
  constexpr int kCalls = 64;
  for (const double inline_below_us : {0.0, 1e6}) {
    test::BlockingHandler handler(Config(inline_below_us));
    v1::SolveRequest request = Request(test::MixedProblem());
    request.mutable_options()->mutable_response_mask()->add_paths("velocity");
    std::vector<v1::SolveResponse> responses(kCalls);
    std::vector<Outcome> outcomes(kCalls);
    std::vector<std::thread> authenticator;
    for (int caller = 0; caller < 4; ++caller) {
      authenticator.emplace_back([&, caller] {
        for (int i = caller; i < kCalls; i += 4) {
          handler.Start(request, CallContext(), &responses[i], Outcome::Done, &outcomes[i]);
        }
      });
    }
    for (std::thread& caller : authenticator) caller.join();
    for (int i = 0; i < kCalls; ++i) {
      ASSERT_TRUE(outcomes[i].Wait().has_value());
      EXPECT_EQ(Bits(responses[i]), Bits(responses[0]));
    }
  }
}

TEST(RequestHandlerTest, BeyondTheLimitOfConcurrentCallsItRefusesAtOnce) {
  ServerConfig config = Config(0);
  config.admission.all.max_calls = 1;
  test::BlockingHandler handler(config);
  std::atomic<bool> cancelled{false};
  CallContext cancellable;
  cancellable.cancelled = &cancelled;
  const v1::SolveRequest large = BlockRequest(24);  // minutes unless it is stopped
  v1::SolveResponse large_response, response;
  Outcome running;
  handler.Start(large, cancellable, &large_response, Outcome::Done, &running);

  const v1::SolveRequest small = Request(test::MixedProblem());
  const ServiceStatus refused = handler.Solve(small, CallContext(), &response);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ServiceCode::kResourceExhausted);

  cancelled = true;
  ASSERT_FALSE(running.Wait().has_value());
  EXPECT_EQ(running.Wait().error().code, ServiceCode::kCancelled);
  EXPECT_TRUE(handler.Solve(small, CallContext(), &response).has_value());
}

TEST(RequestHandlerTest, ACallWhoseDeadlineHasPassedIsNotSolved) {
  test::BlockingHandler handler(Config(200));
  CallContext limits;
  limits.deadline = limits.arrival;
  v1::SolveResponse response;
  const ServiceStatus status = handler.Solve(Request(test::MixedProblem()), limits, &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kDeadlineExceeded);
  EXPECT_FALSE(response.has_solution());
}

// A budget that is over before the solve begins still brings the guess, with its certificate.
TEST(RequestHandlerTest, ATimeBudgetOfANanosecondReturnsTheGuess) {
  test::BlockingHandler handler(Config(200));
  v1::SolveRequest request = Request(test::MixedProblem());
  request.mutable_options()->mutable_time_budget()->set_nanos(1);
  v1::SolveResponse response;
  ASSERT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
  const v1::ContactSolution& solution = response.solution();
  ASSERT_EQ(solution.islands().status_size(), 1);
  EXPECT_EQ(solution.islands().status(0), v1::ISLAND_STATUS_DEADLINE);
  EXPECT_EQ(solution.islands().iterations(0), 0u);
  EXPECT_GT(solution.islands().optimality_gap_bound(0), 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(solution.velocity(i), request.problem().trees().guess_velocity(i));
  }
}

TEST(RequestHandlerTest, ATimeBudgetReturnsTheBestIterateOfALargeProblem) {
  test::BlockingHandler handler(Config(200));
  v1::SolveRequest request = BlockRequest(14);
  request.mutable_options()->mutable_time_budget()->set_nanos(20'000'000);
  v1::SolveResponse response;
  ASSERT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
  ASSERT_EQ(response.solution().islands().status_size(), 1);
  EXPECT_EQ(response.solution().islands().status(0), v1::ISLAND_STATUS_DEADLINE);
  EXPECT_EQ(response.solution().velocity_size(), 6 * 14 * 14 * 14);
}

// A client without a deadline would occupy the solver threads for as long as it likes.
TEST(RequestHandlerTest, ASolveOverTheLongestTimeReturnsItsBestIterate) {
  test::BlockingHandler handler(Config(200));
  ClientAccount client("client", {.max_solve_s = 0.02});
  CallContext call;
  call.account = &client;
  v1::SolveRequest request = BlockRequest(14);
  v1::SolveResponse response;
  ASSERT_TRUE(handler.Solve(request, call, &response).has_value());
  ASSERT_EQ(response.solution().islands().status_size(), 1);
  EXPECT_EQ(response.solution().islands().status(0), v1::ISLAND_STATUS_DEADLINE);
  EXPECT_EQ(response.solution().velocity_size(), 6 * 14 * 14 * 14);
  EXPECT_GT(response.solution().islands().optimality_gap_bound(0), 0);
}

// 10 000 sweeps of the smallest problem would hold up all calls behind it on the same thread.
TEST(RequestHandlerTest, AProblemOfManyIterationsIsNotSolvedOnTheReceivingThread) {
  test::BlockingHandler handler(Config(200));
  v1::SolveRequest request = BlockRequest(1);
  v1::SolveOptions* options = request.mutable_options();
  v1::SolveResponse response;
  Outcome few, many;
  handler.Start(request, CallContext(), &response, Outcome::Done, &few);
  ASSERT_TRUE(few.Wait().has_value());
  EXPECT_TRUE(few.CameFrom(std::this_thread::get_id()));
  options->set_newton(v1::NEWTON_METHOD_GAUSS_SEIDEL);
  options->set_max_iterations(10'000);
  options->set_relative_tolerance(0);
  options->set_absolute_speed_tolerance(0);
  handler.Start(request, CallContext(), &response, Outcome::Done, &many);
  ASSERT_TRUE(many.Wait().has_value());
  EXPECT_FALSE(many.CameFrom(std::this_thread::get_id()));
}

// While another client is active.
TEST(RequestHandlerTest, AFloodOfSmallProblemsOfOneClientIsQueued) {
  test::BlockingHandler handler(Config(1e6));
  ClientAccount flood("flood"), other("other");
  const v1::SolveRequest request = Request(test::MixedProblem());
  const auto answered_here = [&](ClientAccount* account) {
    CallContext call;
    call.account = account;
    v1::SolveResponse response;
    Outcome outcome;
    handler.Start(request, call, &response, Outcome::Done, &outcome);
    EXPECT_TRUE(outcome.Wait().has_value());
    return outcome.CameFrom(std::this_thread::get_id());
  };
  // It waits in the queue, and so is active whatever the time: two solves have the threads.
  std::atomic<bool> cancelled{false};
  CallContext cancellable;
  cancellable.cancelled = &cancelled;
  cancellable.account = &other;
  const v1::SolveRequest large = BlockRequest(24);
  std::vector<v1::SolveResponse> responses(3);
  std::vector<Outcome> outcomes(3);
  for (int i = 0; i < 3; ++i) {
    handler.Start(large, cancellable, &responses[i], Outcome::Done, &outcomes[i]);
  }
  EXPECT_TRUE(test::Await([&] {
    for (int i = 0; i < 1000; ++i) {
      if (!answered_here(&flood)) return true;
    }
    return false;
  }));
  cancelled = true;
  for (Outcome& outcome : outcomes) EXPECT_FALSE(outcome.Wait().has_value());
}

TEST(RequestHandlerTest, ACallOverTheRateOfItsClientIsRefusedOnItsHeaders) {
  Metrics metrics;
  test::BlockingHandler handler(Config(200), nullptr, &metrics);
  ClientAccount client("client", {.max_calls_per_s = 0.001});
  const auto reserve = [&] { return handler.ReserveCall(&client, Priority::kNormal); };
  const auto first = reserve();
  ASSERT_TRUE(first.has_value());
  handler.ReleaseReservation(&client, *first);
  const auto second = reserve();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(second.error().reason, "CLIENT_RATE");
  EXPECT_EQ(metrics.refusals().at("CLIENT_RATE"), 1u);
}

TEST(RequestHandlerTest, InfoHasTheLimitsOfTheCaller) {
  ServerConfig config = Config(200);
  config.admission.client = {.max_calls = 5, .max_bytes = 6, .max_solve_s = 7};
  test::BlockingHandler handler(config);
  const ClientAccount client("client", {.max_calls = 1,
                                        .max_bytes = 2,
                                        .max_solve_s = 3,
                                        .max_calls_per_s = 4,
                                        .high_priority = false});
  const v1::ServerLimits own = handler.Info(&client).limits();
  EXPECT_EQ(own.max_client_calls(), 1u);
  EXPECT_EQ(own.max_client_bytes(), 2u);
  EXPECT_EQ(own.max_solve_s(), 3);
  EXPECT_EQ(own.max_client_calls_per_s(), 4);
  EXPECT_FALSE(own.high_priority());
  const auto account = handler.admission().AccountOf("another");
  EXPECT_EQ(handler.Info(account.get()).limits().max_solve_s(), 7);
  EXPECT_TRUE(handler.Info(account.get()).limits().high_priority());
}

TEST(RequestHandlerTest, AProblemOverTheMemoryLimitIsRefusedWithBothSizesAndNoOtherIs) {
  ServerConfig config = Config(200);
  config.max_solve_memory_mib = 1;
  Metrics metrics;
  test::BlockingHandler handler(config, nullptr, &metrics);
  v1::SolveResponse response;
  const ServiceStatus refused = handler.Solve(BlockRequest(10), CallContext(), &response);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(refused.error().reason, "SOLVE_MEMORY");
  EXPECT_EQ(refused.error().retry_after_s, 0);
  EXPECT_NE(refused.error().message.find("; a solve may take 1 MiB"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(metrics.refusals().at("SOLVE_MEMORY"), 1u);
  EXPECT_TRUE(handler.Solve(BlockRequest(3), CallContext(), &response).has_value());
  config.max_solve_memory_mib = 128;
  EXPECT_TRUE(
      test::BlockingHandler(config).Solve(BlockRequest(10), CallContext(), &response).has_value());
}

// What a call is admitted with is the bound of a scene that is laid out as a whole.
TEST(RequestHandlerTest, ASceneInShardsCountsWithWhatShardsTake) {
  const test::ProblemArrays scene = test::Heaps(1, 1000, 5);
  v1::SolveRequest request;
  client::ToMessage(scene, request.mutable_problem());
  const auto request_bytes = static_cast<int64_t>(request.ByteSizeLong());
  ShardedProblem shards;
  ASSERT_TRUE(shards.Read(scene.View(), {}));
  const ServerConfig config = Config(200);
  const int64_t whole = request_bytes + BytesOfSolve(scene.View());
  const int64_t in_shards = request_bytes + BytesOfSolve(shards, {}, config.threads);
  EXPECT_LT(2 * in_shards, whole);
  test::BlockingHandler handler(config);
  EXPECT_TRUE(test::Await([&] {
    v1::SolveResponse response;
    Outcome outcome;
    handler.Start(request, CallContext(), &response, Outcome::Done, &outcome);
    std::set<int64_t> seen;
    while (handler.admission().calls() > 0) seen.insert(handler.admission().bytes());
    EXPECT_TRUE(outcome.Wait().has_value());
    seen.erase(0);
    for (const int64_t bytes : seen) EXPECT_TRUE(bytes == whole || bytes == in_shards) << bytes;
    return seen.contains(in_shards);
  }));
  EXPECT_EQ(handler.admission().bytes(), 0);
}

TEST(RequestHandlerTest, TimingsCoverThePhases) {
  test::BlockingHandler handler(Config(200));
  v1::SolveResponse response;
  ASSERT_TRUE(handler.Solve(Request(test::MixedProblem()), CallContext(), &response).has_value());
  const v1::PhaseTimings& timings = response.solution().timings();
  EXPECT_GT(timings.decode_s(), 0);
  EXPECT_GE(timings.queue_s(), 0);
  EXPECT_GT(timings.solve_s(), 0);
  EXPECT_GT(timings.encode_s(), 0);
}

}  // namespace
}  // namespace sap
