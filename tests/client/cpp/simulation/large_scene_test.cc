// Thousands of bodies, as they fall, hit and come to rest.
#include <gtest/gtest.h>

#include <cstdio>

#include "client/cpp/simulation/run_report.h"
#include "tests/client/cpp/simulation/late_arrival.h"
#include "tests/client/cpp/simulation/scene_run.h"

namespace sap::simulation {
namespace {

struct LargeScene {
  const char* name;
  int bodies;
};

class LargeSceneTest : public testing::TestWithParam<LargeScene> {};

// Prints where the time of a step goes.
TEST_P(LargeSceneTest, RunsTwoSecondsWithoutAFailedStep) {
  const SceneRun run = Simulate(GetParam().name, {.bodies = GetParam().bodies}, 2, {});
  ASSERT_EQ(run.steps.size(), 200u);
  std::printf("%s", SummaryTable(run.steps).c_str());
}

INSTANTIATE_TEST_SUITE_P(Scenes, LargeSceneTest,
                         testing::Values(LargeScene{"heaps", 1000}, LargeScene{"heaps", 3000},
                                         LargeScene{"pile", 1000}, LargeScene{"pile", 3000}),
                         [](const auto& info) {
                           return std::string(info.param.name) + std::to_string(info.param.bodies);
                         });

// A few of sixty piles still collapse after five seconds, at a meter per second.
TEST(ManySeedsTest, NothingArrivesDeepWithAnyOfThirtySeeds) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (const bool walls : {true, false}) {
      EXPECT_LT(FindLateArrival(seed, walls).deepest, 5e-4) << seed << " " << walls;
    }
  }
}

}  // namespace
}  // namespace sap::simulation
