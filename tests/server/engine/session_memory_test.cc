// A warm step allocates nothing: neither in the solver nor in the session around it. A binary of
// its own, since it counts by replacing operator new.
#include <gtest/gtest.h>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "server/engine/engine.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/problem_set.h"

namespace sap::test {
namespace {

// Allocations of one step whose messages are there already.
int64_t AllocationsOfStep(Session* session, const v1::SessionStep& step, v1::StepOutcome* outcome) {
  const int64_t before = AllocationCount();
  session->Step(step, CallContext(), outcome);
  return AllocationCount() - before;
}

class SessionMemoryTest : public testing::TestWithParam<std::string> {};

TEST_P(SessionMemoryTest, AWarmStepOfAnUnchangedPatternAllocatesNothing) {
  // One thread: oneTBB allocates its tasks, by operator new among others.
  ServerConfig config;
  config.threads = 1;
  Engine engine(config);
  const std::unique_ptr<Session> session = std::move(*engine.NewSession());
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

INSTANTIATE_TEST_SUITE_P(Problems, SessionMemoryTest,
                         testing::Values("clutter_bin_8_t2p00", "clutter_bin_40_t1p00",
                                         "heaps_300x3_t1p50", "humanoid_boxes_t3p00"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sap::test
