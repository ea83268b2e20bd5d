#include "server/worlds/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "client/mujoco/sap_mujoco.h"
#include "tests/server/worlds/mujoco_worlds.h"

namespace sap {
namespace {

using test::ComputeHere;
using test::ComputeThere;
using test::HaveEqualBits;
using test::kNever;
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

// A binary model, and one whose meshes are in other files, are stepped like the model of one file.
TEST(WorkerProcessTest, StepsBinaryModelsAndModelsOfSeveralFiles) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  Rollout rollout = RolloutOf("gripper", 2, 10, SAP_MUJOCO_SAP);
  const RolloutAnswer here = ComputeHere(rollout);
  rollout.model = test::BinaryOf(*rollout.model);
  const auto binary = ComputeThere(worker.get(), rollout, 2, 10);
  ASSERT_TRUE(binary.has_value()) << binary.error().message;
  ExpectEqual(*binary, here);

  rollout.model = test::ModelOf(
      "<mujoco><include file='parts/bodies.xml'/><asset><mesh name='a' file='parts/a.obj'/>"
      "<mesh name='b' file='b.obj'/><mesh name='c' file='c.obj'/></asset></mujoco>");
  auto files = std::make_shared<ModelSource>(*rollout.model);
  files->files.push_back(
      {"parts/bodies.xml",
       "<mujoco><worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 1'><freejoint/>"
       "<geom type='mesh' mesh='a'/><geom type='mesh' mesh='b' pos='1 0 0'/>"
       "<geom type='mesh' mesh='c' pos='0 1 0'/></body></worldbody></mujoco>"});
  for (const char* name : {"parts/a.obj", "b.obj", "c.obj"}) {
    files->files.push_back({name, test::kTetrahedron});
  }
  const auto sizes = worker->Load(*files, kNever);
  ASSERT_TRUE(sizes.has_value()) << sizes.error().message;
  EXPECT_EQ(sizes->nv, 6);
  EXPECT_EQ(sizes->nbody, 2);
}

TEST(WorkerProcessTest, TellsTheSizesOfAModel) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  const auto sizes = worker->Load(*test::ModelOf(test::SceneOf("gripper")), kNever);
  ASSERT_TRUE(sizes.has_value()) << sizes.error().message;
  EXPECT_EQ(sizes->nq, 7 + 2 + 7);
  EXPECT_EQ(sizes->nv, 6 + 2 + 6);
  EXPECT_EQ(sizes->nu, 2);
  EXPECT_EQ(sizes->na, 0);
  EXPECT_EQ(sizes->nbody, 6);
  EXPECT_EQ(sizes->neq, 1);
  EXPECT_EQ(sizes->nmocap, 1);
  EXPECT_EQ(sizes->nuserdata, 0);
  EXPECT_EQ(sizes->nsensordata, 4);
  EXPECT_EQ(sizes->full_physics, 1 + sizes->nq + sizes->nv);
  const int32_t user = 2 + sizes->nv + 6 * sizes->nbody + 1 + 7;
  EXPECT_EQ(sizes->integration, sizes->full_physics + sizes->nv + user);
  EXPECT_EQ(sizes->control, (std::array<int32_t, 8>{0, 2, 14, 36, 1, 3, 4, 0}));
}

// Every third step is answered, and the last one, however the rollout is cut.
TEST(WorkerProcessTest, AnswersTheStepsThatAreWanted) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  Rollout rollout = RolloutOf("gripper", 3, 20, SAP_MUJOCO_SAP);
  const RolloutAnswer all = ComputeHere(rollout);
  rollout.settings.every = 3;
  ASSERT_EQ(rollout.Rows(), 7);
  for (const int steps : {20, 1, 4, 6}) {
    SCOPED_TRACE(steps);
    const auto there = ComputeThere(worker.get(), rollout, 2, steps);
    ASSERT_TRUE(there.has_value()) << there.error().message;
    const int64_t state = rollout.AnsweredSize();
    const int64_t sensors = rollout.sizes.nsensordata;
    for (int64_t world = 0; world < 3; ++world) {
      for (int64_t row = 0; row < 7; ++row) {
        const int64_t step = std::min<int64_t>(3 * row + 2, 19);
        EXPECT_TRUE(std::equal(all.states.begin() + (world * 20 + step) * state,
                               all.states.begin() + (world * 20 + step + 1) * state,
                               there->states.begin() + (world * 7 + row) * state));
        EXPECT_TRUE(std::equal(all.sensors.begin() + (world * 20 + step) * sensors,
                               all.sensors.begin() + (world * 20 + step + 1) * sensors,
                               there->sensors.begin() + (world * 7 + row) * sensors));
      }
    }
  }
}

// A call that goes on from the final states of another one has the bits of both in one.
TEST(WorkerProcessTest, GoesOnFromItsCheckpointsInAnotherCallAndWorker) {
  for (const std::string& scene : test::SceneNames()) {
    SCOPED_TRACE(scene);
    Rollout rollout = RolloutOf(scene, 2, 30, SAP_MUJOCO_SAP);
    const RolloutAnswer whole = ComputeHere(rollout);
    Rollout first = rollout;
    first.steps = 13;
    Rollout second = rollout;
    second.steps = 17;
    second.settings.full_physics = false;
    second.settings.answered_kind = AnsweredKind::kFullPhysics;
    first.controls.clear();
    second.controls.clear();
    for (int64_t world = 0; world < 2; ++world) {
      const auto begin = rollout.controls.begin() + world * 30 * rollout.ControlSize();
      const auto middle = begin + 13 * rollout.ControlSize();
      first.controls.insert(first.controls.end(), begin, middle);
      second.controls.insert(second.controls.end(), middle, begin + 30 * rollout.ControlSize());
    }
    const auto begun = ComputeThere(test::StartWorker().get(), first, 2, 13);
    ASSERT_TRUE(begun.has_value()) << begun.error().message;
    second.states = begun->checkpoints;
    const auto ended = ComputeThere(test::StartWorker().get(), second, 1, 17);
    ASSERT_TRUE(ended.has_value()) << ended.error().message;
    const int64_t size = rollout.AnsweredSize();
    for (int64_t world = 0; world < 2; ++world) {
      EXPECT_TRUE(std::equal(ended->states.begin() + world * 17 * size,
                             ended->states.begin() + (world + 1) * 17 * size,
                             whole.states.begin() + (world * 30 + 13) * size));
    }
  }
}

// Falls on a plane and comes to rest.
Rollout FallingSphere(int64_t steps) {
  Rollout rollout;
  rollout.model = test::ModelOf(
      "<mujoco><option timestep='.01'/><worldbody><geom type='plane' size='1 1 1'/>"
      "<body pos='0 0 .12'><freejoint/><geom size='.1'/></body></worldbody></mujoco>");
  rollout.sizes = test::SizesOf(*rollout.model);
  rollout.steps = steps;
  rollout.states = {0, 0, 0, .12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return rollout;
}

// A world ends at rest in the step in which the local rollout ends, and its last state is there
// also if it has no row.
TEST(WorkerProcessTest, EndsWorldsAtRestInTheStepOfALocalRollout) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  Rollout rollout = FallingSphere(200);
  rollout.settings.rest_speed = 1e-3;
  rollout.settings.rest_duration_s = .1;
  const RolloutAnswer here = ComputeHere(rollout);
  ASSERT_EQ(here.progress[0].end, WorldEnd::kRest);
  const int64_t taken = here.progress[0].steps;
  ASSERT_LT(taken, 100);
  for (const int steps : {200, 1, 7}) {
    SCOPED_TRACE(steps);
    const auto there = ComputeThere(worker.get(), rollout, 1, steps);
    ASSERT_TRUE(there.has_value()) << there.error().message;
    EXPECT_EQ(there->progress[0].end, WorldEnd::kRest);
    EXPECT_EQ(there->progress[0].steps, taken);
    EXPECT_NEAR(there->progress[0].slow_s, .1, 1e-12);
    EXPECT_TRUE(
        std::equal(here.states.begin(), here.states.begin() + taken * 14, there->states.begin()));
  }
  rollout.settings.every = 101;  // a row after the end, and the last one
  const auto there = ComputeThere(worker.get(), rollout, 1, 200);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_TRUE(std::equal(here.states.end() - 14, here.states.end(), there->states.begin()));
}

// States that are not finite end as those of a local rollout do, and other worlds go on.
TEST(WorkerProcessTest, DivergingWorldsEndAsInALocalRollout) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const bool holds : {false, true}) {
    for (const int32_t law : kLaws) {
      for (const double value : {kNan, 1e200, 1e9}) {
        SCOPED_TRACE(testing::Message() << holds << ", law " << law << ", " << value);
        Rollout rollout = RolloutOf("muscle", 3, 12, law);
        rollout.settings.holds_after_warning = holds;
        rollout.states[static_cast<size_t>(rollout.sizes.full_physics + 2)] = value;
        const RolloutAnswer here = ComputeHere(rollout);
        const auto there = ComputeThere(worker.get(), rollout, 3, 12);
        ASSERT_TRUE(there.has_value()) << there.error().message;
        for (size_t world = 0; world < 3; ++world) {
          const WorldProgress& mine = there->progress[world];
          EXPECT_EQ(mine.steps, here.progress[world].steps);
          EXPECT_EQ(mine.end, here.progress[world].end);
          EXPECT_EQ(mine.code, here.progress[world].code);
          EXPECT_EQ(mine.warnings, here.progress[world].warnings);
          EXPECT_STREQ(mine.message.data(), here.progress[world].message.data());
          const auto row = static_cast<int64_t>(world) * 12 * rollout.AnsweredSize();
          const int64_t numbers = mine.steps * rollout.AnsweredSize();
          EXPECT_EQ(std::memcmp(&there->states[static_cast<size_t>(row)],
                                &here.states[static_cast<size_t>(row)],
                                static_cast<size_t>(numbers) * sizeof(double)),
                    0);
        }
      }
    }
  }
}

TEST(WorkerProcessTest, AnIslandThatIsNotSolvedEndsItsWorldIfThatIsAskedFor) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  Rollout rollout = RolloutOf("gripper", 1, 20, SAP_MUJOCO_SAP);
  rollout.settings.max_iterations = 1;
  rollout.settings.relative_tolerance = 1e-12;
  const RolloutAnswer here = ComputeHere(rollout);
  const auto goes_on = ComputeThere(worker.get(), rollout, 1, 20);
  ASSERT_TRUE(goes_on.has_value()) << goes_on.error().message;
  ExpectEqual(*goes_on, here);
  EXPECT_EQ(goes_on->progress[0].end, WorldEnd::kSteps);
  const auto unsolved = std::ranges::find_if(
      here.certificates, [](const auto& certificate) { return certificate.unsolved > 0; });
  ASSERT_NE(unsolved, here.certificates.end());
  rollout.settings.refuses_unsolved = true;
  const auto ends = ComputeThere(worker.get(), rollout, 1, 20);
  ASSERT_TRUE(ends.has_value()) << ends.error().message;
  EXPECT_EQ(ends->progress[0].steps, unsolved - here.certificates.begin());
  EXPECT_EQ(ends->progress[0].end, WorldEnd::kFailure);
  EXPECT_EQ(ends->progress[0].code, static_cast<int32_t>(ServiceCode::kFailedPrecondition));
  EXPECT_STREQ(ends->progress[0].message.data(), "an island was not solved");
}

// Worlds that a slice has no time for have taken fewer steps, and go on from their checkpoints.
TEST(WorkerProcessTest, ASliceWithoutTimeTakesOneStep) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  test::SliceOfAll slice(RolloutOf("arm", 3, 50, SAP_MUJOCO_SAP));
  slice.get().max_s = 1e-9;
  const ServiceStatus status = worker->Advance(slice.get(), kNever);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(slice.progress()[0].steps, 1);
  EXPECT_EQ(slice.progress()[0].end, WorldEnd::kNone);
  EXPECT_EQ(slice.progress()[1].steps, 0);
  EXPECT_EQ(slice.progress()[2].steps, 0);
}

// A model that was dropped for others is loaded again.
TEST(WorkerProcessTest, KeepsServingMoreModelsThanItKeeps) {
  WorkerConfig config = test::ConfigOfWorker();
  config.max_memory_bytes = int64_t{1} << 30;
  const auto worker = test::StartWorker(config);
  ASSERT_NE(worker, nullptr);
  std::vector<Rollout> rollouts;
  for (int i = 0; i < 6; ++i) rollouts.push_back(RolloutOf("clutter", 1, 3, SAP_MUJOCO_SAP));
  const RolloutAnswer here = ComputeHere(rollouts[0]);
  for (int round = 0; round < 2; ++round) {
    for (const Rollout& rollout : rollouts) {
      const auto there = ComputeThere(worker.get(), rollout, 1, 3);
      ASSERT_TRUE(there.has_value()) << there.error().message;
      EXPECT_TRUE(HaveEqualBits(there->states, here.states));
    }
  }
}

TEST(WorkerProcessTest, ModelsWithIpcAreSteppedUnderTheLawRunAlone) {
  if (test::Mujoco().calls().ipc == 0) return;  // a version without it
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  Rollout rollout = FallingSphere(3);
  rollout.model = test::ModelOf(
      "<mujoco><option timestep='.01' integrator='discrete' solver='CG'>"
      "<flag ipc='enable'/></option>"
      "<worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>");
  const auto refused = ComputeThere(worker.get(), rollout, 1, 3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, "MODEL_REFUSED");
  EXPECT_THAT(refused.error().message, testing::HasSubstr("`ipc`"));
  rollout.settings.law = SAP_MUJOCO_RUN;
  const auto there = ComputeThere(worker.get(), rollout, 1, 3);
  ASSERT_TRUE(there.has_value()) << there.error().message;
}

TEST(WorkerProcessTest, AWorkerThatEndsLosesItsSliceAndSaysWhere) {
  const auto worker = test::StartWorker();
  ASSERT_NE(worker, nullptr);
  test::SliceOfAll slice(RolloutOf("clutter", 4, 1000000, SAP_MUJOCO_SAP));
  slice.get().first_world = 7;
  int asked = 0;
  const ServiceStatus status = worker->Advance(slice.get(), [&] {
    if (++asked == 5) kill(worker->pid(), SIGSEGV);
    return false;
  });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(status.error().reason, "WORLD_LOST");
  EXPECT_THAT(status.error().message,
              testing::MatchesRegex("step [0-9]+ of world 7: .*signal 11.*"));
  EXPECT_FALSE(worker->is_alive());
}

// A busy machine may not let it come to a step in time, but not each time.
TEST(WorkerProcessTest, ACallThatIsStoppedBetweenStepsKeepsItsWorker) {
  std::unique_ptr<WorkerProcess> worker;
  for (int attempt = 0; attempt < 100 && (worker == nullptr || !worker->is_alive()); ++attempt) {
    worker = test::StartWorker();
    ASSERT_NE(worker, nullptr);
    test::SliceOfAll slice(RolloutOf("arm", 1, 1000000, SAP_MUJOCO_SAP));
    int asked = 0;
    const ServiceStatus status = worker->Advance(slice.get(), [&] { return ++asked > 5; });
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ServiceCode::kCancelled);
  }
  ASSERT_TRUE(worker->is_alive());
  const Rollout rollout = RolloutOf("arm", 1, 5, SAP_MUJOCO_SAP);
  const auto there = ComputeThere(worker.get(), rollout, 1, 5);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  ExpectEqual(*there, ComputeHere(rollout));
}

TEST(WorkerProcessTest, SaysWhyItCannotStart) {
  const auto error_of = [](const WorkerConfig& config) {
    const auto worker = WorkerProcess::Start(config);
    return worker ? "it started" : worker.error();
  };
  WorkerConfig config = test::ConfigOfWorker();
  config.program = "/nowhere/sap-worlds";
  EXPECT_EQ(error_of(config), "/nowhere/sap-worlds: cannot be started: No such file or directory");
  config = test::ConfigOfWorker();
  config.mujoco_library = "/nowhere/libmujoco.so";
  EXPECT_EQ(error_of(config), "/nowhere/libmujoco.so cannot be read: No such file or directory");
  config.mujoco_library = config.program;
  EXPECT_THAT(error_of(config), testing::HasSubstr("sap-worlds"));
  config = test::ConfigOfWorker();
  config.program = "/bin/false";
  EXPECT_EQ(error_of(config), "/bin/false: ended with status 1 before it was ready");
}

}  // namespace
}  // namespace sap
