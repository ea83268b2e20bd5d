// What the service counts is what it keeps, after every kind of call, and what it does where memory
// runs short. A binary that replaces operator new.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/random_problem.h"
#include "tests/support/solution_bits.h"
#include "tests/support/tree_parts.h"

namespace sap::test {
namespace {

constexpr double kMost = 0.2;  // of what is allocated
// Small parts; room for the answers of a session, which the transport keeps; scratch of threads.
constexpr double kConstant_bytes = 300'000;

ServerConfig Config() {
  ServerConfig config;
  config.threads = 2;
  config.io_threads = 2;
  return config;
}

v1::ContactProblem Message(const ProblemArrays& problem) {
  v1::ContactProblem message;
  client::ToMessage(problem, &message);
  return message;
}

// Bodies thrown together again at each step: their pattern does not come again.
ProblemArrays Moving(int step) { return RandomBodiesInContact(step, 200, 300); }

ProblemArrays ByLoadPath(ProblemArrays problem) {
  problem.regularization.rule = DelassusRule::kLoadPath;
  problem.bodies.initial_velocity.assign(6 * problem.bodies.mass.size(), 0.0);
  return problem;
}

ProblemArrays Coupled(int step) {
  const TreesInContact trees{.trees = 6, .contacts = 30, .min_dofs = 60, .max_dofs = 90};
  return InParts(RandomTreesInContact(step, trees), {3, 6, 1 + step % 5});
}

v1::DifferentiateRequest Differentiation(const ProblemArrays& problem) {
  v1::DifferentiateRequest request;
  *request.mutable_problem() = Message(problem);
  v1::Cotangent* cotangent = request.add_cotangents();
  for (size_t i = 0; i < 6 * problem.bodies.mass.size(); ++i) cotangent->add_velocity(1);
  return request;
}

// A session after so many steps, each of another problem.
std::unique_ptr<Session> SteppedSession(RequestHandler* handler, int steps,
                                        const std::function<ProblemArrays(int)>& problem,
                                        std::vector<AnswerBits>* bits = nullptr) {
  std::unique_ptr<Session> session = std::move(*handler->NewSession());
  EXPECT_TRUE(session->Open({}).has_value());
  v1::SessionStep step;
  v1::StepOutcome outcome;
  for (int i = 0; i < steps; ++i) {
    step.set_step_id(i + 1);
    *step.mutable_problem() = Message(problem(i));
    Step(session.get(), step, CallContext(), &outcome);
    EXPECT_TRUE(outcome.outcome().has_solution());
    if (bits != nullptr) bits->push_back(Bits(outcome.outcome().solution()));
  }
  return session;
}

class CountedMemoryTest : public testing::Test {
 protected:
  // What `keep` returns lives until all is compared.
  template <typename Keep>
  void ExpectAllCounted(const std::string& call, const Keep& keep) {
    handler_ = std::make_unique<BlockingHandler>(Config());
    v1::SolveRequest first;
    *first.mutable_problem() = Message(Heaps(1, 1, 2));
    v1::SolveResponse answer;
    ASSERT_TRUE(handler_->Solve(first, CallContext(), &answer).has_value());
    const auto before = static_cast<double>(LiveBytes() - handler_->counted_bytes());
    [[maybe_unused]] const auto kept = keep();
    const auto counted = static_cast<double>(handler_->counted_bytes());
    const double allocated = static_cast<double>(LiveBytes()) - before;
    EXPECT_GT(allocated, kConstant_bytes) << call << " keeps nothing";
    EXPECT_NEAR(counted, allocated, kMost * allocated + kConstant_bytes) << call;
  }

  std::unique_ptr<BlockingHandler> handler_;
};

TEST_F(CountedMemoryTest, UnaryCallsAndBatches) {
  ExpectAllCounted("Solve", [&] {
    for (int i = 0; i < 50; ++i) {
      v1::SolveRequest request;
      *request.mutable_problem() = Message(Moving(i));
      v1::SolveResponse response;
      EXPECT_TRUE(handler_->Solve(request, CallContext(), &response).has_value());
    }
    return 0;
  });
  ExpectAllCounted("Solve, LOAD_PATH", [&] {
    v1::SolveRequest request;
    *request.mutable_problem() = Message(ByLoadPath(Heaps(1, 20, 20)));
    v1::SolveResponse response;
    EXPECT_TRUE(handler_->Solve(request, CallContext(), &response).has_value());
    return 0;
  });
  v1::SolveBatchRequest batch;
  for (int i = 0; i < 20; ++i) *batch.add_problems() = Message(Moving(i));
  ExpectAllCounted("SolveBatch", [&] {
    v1::SolveBatchResponse response;
    EXPECT_TRUE(handler_->SolveBatch(batch, CallContext(), &response).has_value());
    return 0;
  });
  ExpectAllCounted("StreamBatch", [&] {
    v1::StreamBatchRequest request;
    *request.mutable_problems() = batch.problems();
    EXPECT_TRUE(handler_->StreamBatch(request, CallContext(), [](int, v1::Outcome) {}));
    return 0;
  });
}

TEST_F(CountedMemoryTest, Derivatives) {
  const v1::DifferentiateRequest request = Differentiation(Heaps(1, 10, 10));
  ExpectAllCounted("Differentiate", [&] {
    v1::DifferentiateResponse response;
    EXPECT_TRUE(handler_->Differentiate(request, CallContext(), &response).has_value());
    return 0;
  });
  ExpectAllCounted("DifferentiateBatch", [&] {
    v1::DifferentiateBatchRequest batch;
    for (int i = 0; i < 4; ++i) *batch.add_requests() = request;
    v1::DifferentiateBatchResponse response;
    EXPECT_TRUE(handler_->DifferentiateBatch(batch, CallContext(), &response).has_value());
    return 0;
  });
}

TEST_F(CountedMemoryTest, Sessions) {
  ExpectAllCounted("one pattern", [&] {
    return SteppedSession(handler_.get(), 3, [](int) { return Heaps(1, 20, 20); });
  });
  ExpectAllCounted("contacts that move",
                   [&] { return SteppedSession(handler_.get(), 300, Moving); });
  ExpectAllCounted("contacts that move, LOAD_PATH", [&] {
    return SteppedSession(handler_.get(), 30, [](int i) { return ByLoadPath(Moving(i)); });
  });
  ExpectAllCounted("coupled trees", [&] { return SteppedSession(handler_.get(), 30, Coupled); });
}

TEST_F(CountedMemoryTest, ASessionThatEndsIsCountedNoMore) {
  handler_ = std::make_unique<BlockingHandler>(Config());
  auto session = SteppedSession(handler_.get(), 20, Moving);
  EXPECT_GT(handler_->admission().kept_bytes(), 0);
  session.reset();
  EXPECT_EQ(handler_->admission().kept_bytes(), 0);
}

// What is of least use goes first: a step of the last pattern still orders nothing.
TEST(SessionPlansTest, PlansOfEarlierStepsAreFreedBeforeAllElse) {
  constexpr int kSteps = 200;
  int64_t without_earlier_plans = 0;
  std::vector<AnswerBits> expected;
  {
    BlockingHandler roomy(Config());
    const auto session = SteppedSession(&roomy, kSteps, Moving, &expected);
    const auto shorter = SteppedSession(&roomy, 1, Moving);
    without_earlier_plans = roomy.admission().kept_bytes();
  }
  ServerConfig config = Config();
  config.admission.client.max_bytes = without_earlier_plans / 2;
  BlockingHandler narrow(config);
  std::vector<AnswerBits> bits;
  const auto session = SteppedSession(&narrow, kSteps, Moving, &bits);
  EXPECT_EQ(bits, expected);
  EXPECT_LE(narrow.admission().kept_bytes(), config.admission.client.max_bytes);
  // More than the velocities, which are all that is left where plans alone do not make room.
  EXPECT_GT(narrow.admission().kept_bytes(), 2 * NamedVelocities::BytesFor(200, 1200));
}

// Memory of a process, as it is told.
struct Told {
  ProcessMemory memory{.resident_bytes = 0, .limit_bytes = 1000};
  std::function<ProcessMemory()> read = [this] { return memory; };
};

TEST(MemoryGuardTest, RefusesAboveFourFifthsAndAcceptsBelowThreeQuarters) {
  using Change = MemoryGuard::Change;
  Told told;
  int freed = 0;
  MemoryGuard guard;
  const auto look = [&](int64_t resident) {
    told.memory.resident_bytes = resident;
    return guard.Look({told.read, [&] { ++freed; }});
  };
  EXPECT_EQ(look(800), Change::kNone);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(look(801), Change::kShort);
  EXPECT_EQ(look(990), Change::kNone);
  EXPECT_EQ(look(760), Change::kNone);  // not below where it would begin again
  EXPECT_TRUE(guard.is_short());
  EXPECT_EQ(freed, 3);
  EXPECT_EQ(look(750), Change::kEnough);
  EXPECT_EQ(look(790), Change::kNone);
  EXPECT_FALSE(guard.is_short());
  EXPECT_EQ(freed, 3);
  told.memory.limit_bytes = 0;  // not known
  EXPECT_EQ(look(1 << 30), Change::kNone);
}

TEST(MemoryGuardTest, RefusesNothingWhereCachesHadTheMemory) {
  Told told;
  told.memory.resident_bytes = 900;
  MemoryGuard guard;
  EXPECT_EQ(guard.Look({told.read, [&] { told.memory.resident_bytes = 500; }}),
            MemoryGuard::Change::kNone);
  EXPECT_FALSE(guard.is_short());
}

// Sessions go on: their steps are answered, with the same bits.
TEST(ShortOfMemoryTest, NewCallsAreRefusedAndSessionsKeepNothing) {
  std::vector<AnswerBits> expected;
  {
    BlockingHandler roomy(Config());
    (void)SteppedSession(&roomy, 2, Moving, &expected);
  }
  BlockingHandler handler(Config());
  v1::SolveRequest request;
  *request.mutable_problem() = Message(Heaps(1, 20, 10));
  v1::SolveResponse response;
  ASSERT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
  std::unique_ptr<Session> session = std::move(*handler.NewSession());
  ASSERT_TRUE(session->Open({}).has_value());
  EXPECT_GT(handler.idle_bytes(), 0);
  Told told;
  auto now = RequestHandler::Clock::now();
  const auto sweep = [&](int64_t resident) {
    told.memory.resident_bytes = resident;
    now += std::chrono::seconds(1);
    return handler.Sweep(told.read, now);
  };
  sweep(700);
  EXPECT_GT(handler.idle_bytes(), 0);
  sweep(900);
  EXPECT_EQ(handler.idle_bytes(), 0);
  const ServiceStatus refused = handler.Solve(request, CallContext(), &response);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(refused.error().reason, "SERVER_MEMORY");
  EXPECT_GT(refused.error().retry_after_s, 0);
  EXPECT_EQ(handler.NewSession().error().reason, "SERVER_MEMORY");
  const auto account = handler.admission().AccountOf("client");
  EXPECT_EQ(handler.ReserveCall(account.get(), Priority::kNormal).error().reason, "SERVER_MEMORY");

  std::vector<AnswerBits> bits;
  for (int i = 0; i < 2; ++i) {
    v1::SessionStep step;
    step.set_step_id(i + 1);
    *step.mutable_problem() = Message(Moving(i));
    v1::StepOutcome outcome;
    Step(session.get(), step, CallContext(), &outcome);
    ASSERT_TRUE(outcome.outcome().has_solution());
    bits.push_back(Bits(outcome.outcome().solution()));
    EXPECT_EQ(handler.admission().kept_bytes(), NamedVelocities::BytesFor(200, 1200));
  }
  EXPECT_EQ(bits, expected);
  EXPECT_EQ(handler.idle_bytes(), 0);

  sweep(700);
  EXPECT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
  EXPECT_TRUE(handler.NewSession().has_value());
}

}  // namespace
}  // namespace sap::test
