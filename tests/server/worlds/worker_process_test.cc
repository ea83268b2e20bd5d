#include "server/worlds/worker_process.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "client/mujoco/sap_mujoco.h"
#include "tests/server/worlds/mujoco_worlds.h"

namespace sap {
namespace {

using test::ComputeHere;
using test::ComputeThere;
using test::HaveEqualBits;
using test::Rollout;
using test::RolloutAnswer;
using test::RolloutOf;

constexpr int32_t kLaws[] = {SAP_MUJOCO_SAP, SAP_MUJOCO_MUJOCO, SAP_MUJOCO_COULOMB, SAP_MUJOCO_RUN};

bool AreEqual(const sap_mujoco_certificate& a, const sap_mujoco_certificate& b) {
  return std::tie(a.islands, a.unsolved, a.iterations, a.bound) ==
         std::tie(b.islands, b.unsolved, b.iterations, b.bound);
}

void ExpectEqual(const RolloutAnswer& there, const RolloutAnswer& here) {
  EXPECT_TRUE(HaveEqualBits(there.states, here.states));
  EXPECT_TRUE(HaveEqualBits(there.sensors, here.sensors));
  ASSERT_EQ(there.certificates.size(), here.certificates.size());
  for (size_t i = 0; i < here.certificates.size(); ++i) {
    EXPECT_TRUE(AreEqual(there.certificates[i], here.certificates[i])) << i;
  }
  for (size_t i = 0; i < here.progress.size(); ++i) {
    EXPECT_EQ(there.progress[i].steps, here.progress[i].steps);
    EXPECT_EQ(there.progress[i].end, here.progress[i].end);
    EXPECT_EQ(there.progress[i].code, here.progress[i].code);
  }
}

// The answer of a worker has the bits of sap_mujoco_rollout, for each scene and law, however it is
// cut into slices.
TEST(WorkerProcessTest, StepsWithTheBitsOfALocalRolloutInWholeAndInSlices) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  for (const std::string& scene : test::SceneNames()) {
    for (const int32_t law : kLaws) {
      SCOPED_TRACE(scene + ", law " + std::to_string(law));
      const Rollout rollout = RolloutOf(scene, 4, 30, law);
      const RolloutAnswer here = ComputeHere(rollout);
      for (const auto& [worlds, steps] : {std::pair<int, int>{4, 30}, {1, 30}, {3, 7}}) {
        const auto there = ComputeThere(worker.get(), rollout, worlds, steps);
        ASSERT_TRUE(there.has_value()) << there.error().message;
        ExpectEqual(*there, here);
      }
    }
  }
}

}  // namespace
}  // namespace sap
