// A warm step allocates nothing: neither in the solver nor in the session around it. And memory
// that runs out ends one solve. A binary of its own, since it replaces operator new.
#include <gtest/gtest.h>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/problem_set.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

// Allocations of one step whose messages are there already.
int64_t AllocationsOfStep(Session* session, const v1::SessionStep& step, v1::StepOutcome* outcome) {
  const int64_t before = AllocationCount();
  Step(session, step, CallContext(), outcome);
  return AllocationCount() - before;
}

class SessionMemoryTest : public testing::TestWithParam<std::string> {};

TEST_P(SessionMemoryTest, AWarmStepOfAnUnchangedPatternAllocatesNothing) {
  // One thread: oneTBB allocates its tasks, by operator new among others.
  ServerConfig config;
  config.threads = 1;
  config.inline_below_us = 1e9;  // the queue allocates
  BlockingHandler handler(config);
  const std::unique_ptr<Session> session = std::move(*handler.NewSession());
  ASSERT_TRUE(session->Open({}).has_value());

  auto problem = client::LoadProblem(ProblemPath(GetParam()));
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  problem->trees.guess_velocity.clear();
  problem->bodies.guess_velocity.clear();
  for (uint32_t i = 0; i < problem->trees.dofs.size(); ++i) problem->trees.tree_id.push_back(i);
  v1::SessionStep step;
  v1::StepOutcome outcome;
  for (int i = 0; i < 6; ++i) {
    // Other numbers at each step, so that there is something to solve.
    for (double& v : problem->trees.free_motion_velocity) v *= 1.02;
    step.set_step_id(i);
    client::ToMessage(*problem, step.mutable_problem());
    const int64_t allocations = AllocationsOfStep(session.get(), step, &outcome);
    ASSERT_TRUE(outcome.outcome().has_solution());
    if (i == 0) {
      EXPECT_GT(allocations, 0);
    } else {
      EXPECT_TRUE(outcome.warm_started());
      EXPECT_GT(outcome.outcome().solution().islands().iterations(0), 0u);
      EXPECT_EQ(allocations, 0) << "step " << i;
    }
  }
}

// With one thread, so that the same allocation fails in every run.
TEST(EngineMemoryTest, ASolveThatRunsOutOfMemoryIsRefusedAndTheNextIsAnswered) {
  ServerConfig config;
  config.threads = 1;
  config.inline_below_us = 1e9;  // the queue allocates
  v1::SolveRequest request;
  client::ToMessage(SphereBlock(6), request.mutable_problem());
  v1::SolveResponse expected;
  int64_t allocations = AllocationCount();
  ASSERT_TRUE(BlockingHandler(config).Solve(request, CallContext(), &expected).has_value());
  allocations = AllocationCount() - allocations;
  for (const double part : {0.4, 0.5, 0.6, 0.7}) {
    BlockingHandler handler(config);
    v1::SolveResponse response;
    FailAllocation(static_cast<int64_t>(part * static_cast<double>(allocations)));
    const ServiceStatus refused = handler.Solve(request, CallContext(), &response);
    FailAllocation(0);
    ASSERT_FALSE(refused.has_value()) << part;
    EXPECT_EQ(refused.error().code, ServiceCode::kResourceExhausted);
    EXPECT_EQ(refused.error().message, "not enough memory for this problem");
    ASSERT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
    EXPECT_EQ(std::vector<double>(response.solution().velocity().begin(),
                                  response.solution().velocity().end()),
              std::vector<double>(expected.solution().velocity().begin(),
                                  expected.solution().velocity().end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, SessionMemoryTest,
                         testing::Values("clutter_bin_8_t2p00", "clutter_bin_40_t1p00",
                                         "heaps_300x3_t1p50", "humanoid_boxes_t3p00"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sap::test
