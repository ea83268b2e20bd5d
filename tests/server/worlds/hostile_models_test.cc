// Models that are made to harm the server: each is an answer of the call that puts or steps it, and
// the next worker goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "client/mujoco/sap_mujoco.h"
#include "server/worlds/worker_process.h"
#include "tests/server/worlds/mujoco_worlds.h"
#include "tests/support/child_process.h"

namespace sap {
namespace {

using test::kNever;
using test::ModelOf;
using test::Rollout;

std::string Scene(const std::string& inner) { return "<mujoco>" + inner + "</mujoco>"; }

// Spheres on the spot: each touches all others.
std::string SpheresInOnePlace(int count) {
  std::ostringstream text;
  for (int i = 0; i < count; ++i) text << "<body><freejoint/><geom size='.1'/></body>";
  return Scene("<worldbody>" + text.str() + "</worldbody>");
}

Rollout RestingRollout(const std::shared_ptr<ModelSource>& model, const ModelSizes& sizes,
                       int64_t steps) {
  Rollout rollout;
  rollout.model = model;
  rollout.sizes = sizes;
  rollout.steps = steps;
  rollout.states.assign(static_cast<size_t>(sizes.full_physics), 0.0);
  for (int64_t body = 0; body < sizes.nv / 6; ++body) {
    rollout.states[static_cast<size_t>(1 + 7 * body + 3)] = 1;
  }
  return rollout;
}

class HostileModelsTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.max_memory_bytes = int64_t{1} << 30;
    config_.max_load_s = 1;
    config_.max_step_s = 0.5;
    worker_ = test::StartWorker(config_);
    ASSERT_NE(worker_, nullptr);
    ASSERT_TRUE(worker_->greeting().is_jailed);
  }

  // Whether a model like those of most clients is stepped, by a new worker if that one has ended.
  void ExpectThatOthersGoOn() {
    if (!worker_->is_alive()) worker_ = test::StartWorker(config_);
    const Rollout rollout = test::RolloutOf("arm", 2, 5, SAP_MUJOCO_SAP);
    const auto there = test::ComputeThere(worker_.get(), rollout, 2, 5);
    ASSERT_TRUE(there.has_value()) << there.error().message;
    EXPECT_TRUE(test::HaveEqualBits(there->states, test::ComputeHere(rollout).states));
  }

  ServiceError RefusalOf(const ModelSource& model) {
    const auto sizes = worker_->Load(model, kNever);
    EXPECT_FALSE(sizes.has_value());
    return sizes ? ServiceError() : sizes.error();
  }

  WorkerConfig config_ = test::ConfigOfWorker();
  std::unique_ptr<WorkerProcess> worker_;
};

// A hundred million spheres.
std::string Replicates() {
  std::string text = "<geom size='.01'/>";
  for (int i = 0; i < 4; ++i) {
    text = "<replicate count='100' offset='.1 0 0'>" + text + "</replicate>";
  }
  return Scene("<worldbody>" + text + "</worldbody>");
}

TEST_F(HostileModelsTest, ModelsThatTakeTooMuchAreRefusedAndOthersGoOn) {
  const std::string models[] = {
      Scene("<asset><hfield name='h' nrow='40000' ncol='40000' size='1 1 1 1'/></asset>"
            "<worldbody><geom type='hfield' hfield='h'/></worldbody>"),
      Scene("<size nuser_body='500000000'/><worldbody><body/></worldbody>"),
      Replicates(),
      Scene("<worldbody><flexcomp name='f' type='grid' count='200 200 200' dim='3'/></worldbody>"),
      Scene("<worldbody><flexcomp name='f' type='grid' count='3000 3000 1' dim='2'/></worldbody>"),
      Scene("<size memory='100G'/>"),
      Scene("<size nuserdata='2000000000'/>"),
      Scene("<asset><texture name='t' type='2d' builtin='flat' width='50000' height='50000'/>"
            "</asset>"),
  };
  for (const std::string& text : models) {
    SCOPED_TRACE(text);
    const ServiceError error = RefusalOf(*ModelOf(text));
    EXPECT_EQ(error.code, ServiceCode::kResourceExhausted);
    EXPECT_THAT(error.reason, testing::AnyOf("MODEL_MEMORY", "MODEL_TIME"));
    ExpectThatOthersGoOn();
  }
}

TEST_F(HostileModelsTest, ModelsThatAreNoneAreRefusedWithTheTextOfMujoco) {
  const std::pair<std::string, const char*> models[] = {
      {"<mujoco", "XML_ERROR_PARSING_ELEMENT"},
      {"", "empty file"},
      {std::string(1000, '\0'), "XML parse error"},
      {"\xff\xfe\xff", "XML parse error"},
      {Scene("<worldbody><geom type='cone' size='1'/></worldbody>"), "invalid keyword"},
      {Scene("<include file='scene.xml'/>"), "already included"},
  };
  for (const auto& [text, why] : models) {
    SCOPED_TRACE(why);
    const ServiceError error = RefusalOf(*ModelOf(text));
    EXPECT_EQ(error.code, ServiceCode::kInvalidArgument);
    EXPECT_EQ(error.reason, "MODEL_REFUSED");
    EXPECT_THAT(error.message, testing::HasSubstr(why));
    ExpectThatOthersGoOn();
  }
}

TEST_F(HostileModelsTest, FilesThatWereNotSentAreNotReadFromTheDiskOfTheServer) {
  const test::TemporaryDirectory directory;
  const std::string mesh = directory / "mesh.obj";
  std::ofstream(mesh) << test::kTetrahedron;
  const std::string uses = "'/></asset><worldbody><geom type='mesh' mesh='m'/></worldbody>";
  const std::pair<std::string, std::string> models[] = {
      {Scene("<include file='/etc/passwd'/>"), "'/etc/passwd'"},
      {Scene("<include file='other.xml'/>"), "'other.xml'"},
      {Scene("<asset><mesh name='m' file='" + mesh + uses), mesh},
      {Scene("<asset><mesh name='m' file='../mesh.obj" + uses), "mesh.obj"},
      {Scene("<asset><texture name='t' type='2d' file='/etc/passwd.png'/></asset>"), "passwd.png"},
      {Scene("<asset><hfield name='h' file='/dev/zero' size='1 1 1 1'/></asset>"), "/dev/zero"},
  };
  for (const auto& [text, name] : models) {
    SCOPED_TRACE(text);
    const ServiceError error = RefusalOf(*ModelOf(text));
    EXPECT_EQ(error.reason, "MODEL_REFUSED");
    EXPECT_THAT(error.message,
                testing::AllOf(testing::HasSubstr("Error opening file"), testing::HasSubstr(name)));
    ExpectThatOthersGoOn();
  }
}

TEST_F(HostileModelsTest, WhatTheStateOfAWorldDoesNotHoldIsRefusedByName) {
  const ServiceError sleep = RefusalOf(*ModelOf(Scene("<option><flag sleep='enable'/></option>")));
  EXPECT_EQ(sleep.reason, "MODEL_REFUSED");
  EXPECT_THAT(sleep.message, testing::HasSubstr("`sleep`"));
  const auto plugin = Scene("<extension><plugin plugin='mujoco.pid'/></extension>");
  const ServiceError missing = RefusalOf(*ModelOf(plugin));
  EXPECT_EQ(missing.reason, "MODEL_REFUSED");
  EXPECT_THAT(missing.message, testing::HasSubstr("mujoco.pid"));
}

// MuJoCo reads a binary model with a plugin where there is none, and does without or ends.
TEST_F(HostileModelsTest, ABinaryModelWithAPluginIsRefused) {
  ModelSource model;
  model.is_binary = true;
  model.files.push_back({"", test::BinaryWithPlugin()});
  const ServiceError error = RefusalOf(model);
  EXPECT_EQ(error.reason, "MODEL_REFUSED");
  EXPECT_THAT(error.message, testing::HasSubstr("plugin"));
  ExpectThatOthersGoOn();
}

TEST_F(HostileModelsTest, AStepThatTakesTooLongIsNamedAndItsWorkerEnds) {
  const auto model = ModelOf(SpheresInOnePlace(400));
  for (const int32_t law : {SAP_MUJOCO_SAP, SAP_MUJOCO_RUN}) {
    if (!worker_->is_alive()) worker_ = test::StartWorker(config_);
    config_.max_load_s = 100;
    const auto sizes = worker_->Load(*model, kNever);
    ASSERT_TRUE(sizes.has_value()) << sizes.error().message;
    Rollout rollout = RestingRollout(model, *sizes, 3);
    rollout.settings.law = law;
    const auto there = test::ComputeThere(worker_.get(), rollout, 1, 3);
    ASSERT_FALSE(there.has_value());
    EXPECT_EQ(there.error().code, ServiceCode::kResourceExhausted);
    EXPECT_EQ(there.error().reason, "WORLD_STEP_TIME");
    EXPECT_EQ(there.error().message, "step 0 of world 0 took longer than 0.5 s (--max-step-s)");
    ASSERT_TRUE(there.error().world_step);
    EXPECT_EQ(there.error().world_step->world, 0);
    EXPECT_EQ(there.error().world_step->step, 0);
    EXPECT_FALSE(worker_->is_alive());
    ExpectThatOthersGoOn();
  }
}

TEST_F(HostileModelsTest, AStepThatNeedsTooMuchMemoryIsNoAnswerAndOthersGoOn) {
  config_.max_load_s = 100;
  config_.max_step_s = 100;
  worker_ = test::StartWorker(config_);
  const auto model = ModelOf(SpheresInOnePlace(1500));
  const auto sizes = worker_->Load(*model, kNever);
  if (sizes) {
    const auto there = test::ComputeThere(worker_.get(), RestingRollout(model, *sizes, 1), 1, 1);
    EXPECT_TRUE(!there || there->progress[0].code != 0);
  } else {
    EXPECT_EQ(sizes.error().reason, "MODEL_MEMORY");
  }
  ExpectThatOthersGoOn();
}

// A call that nobody waits for any more ends within a step that would take many seconds.
TEST_F(HostileModelsTest, ACancelledCallEndsWithinAStep) {
  config_.max_load_s = config_.max_step_s = 1000;
  worker_ = test::StartWorker(config_);
  const auto model = ModelOf(SpheresInOnePlace(400));
  const auto sizes = worker_->Load(*model, kNever);
  ASSERT_TRUE(sizes.has_value()) << sizes.error().message;
  test::SliceOfAll slice(RestingRollout(model, *sizes, 1000000));
  int asked = 0;
  const ServiceStatus status = worker_->Advance(slice.get(), [&] { return ++asked > 3; });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kCancelled);
  EXPECT_FALSE(worker_->is_alive());
  ExpectThatOthersGoOn();
}

// Loading or stepping a damaged binary model is refused, has some result, or ends its worker; it
// does nothing to other models.
TEST_F(HostileModelsTest, DamagedBinaryModelsHarmNobodyElse) {
  config_.max_step_s = 20;
  worker_ = test::StartWorker(config_);
  const std::string whole = test::BinaryOf(*ModelOf(test::SceneOf("gripper")))->files[0].content;
  std::mt19937_64 generator(5);
  const auto below = [&](size_t limit) { return generator() % limit; };
  constexpr int kTries = 120;
  int loaded = 0;
  for (int i = 0; i < kTries; ++i) {
    ModelSource model;
    model.id[0] = static_cast<uint8_t>(i);
    model.id[3] = 1;
    model.is_binary = true;
    std::string bytes = whole;
    if (i % 6 == 0) bytes.resize(below(bytes.size()));
    // Sizes, which MuJoCo checks, are at the beginning.
    const size_t first = i % 3 == 0 ? 0 : std::min<size_t>(bytes.size(), 1500);
    const size_t last = i % 3 == 0 ? std::min<size_t>(bytes.size(), 1500) : bytes.size();
    for (size_t change = below(10) + 1; change > 0 && first < last; --change) {
      bytes[first + below(last - first)] =
          static_cast<char>(change % 2 == 0 ? generator() : 1 << below(8));
    }
    model.files.push_back({"", std::move(bytes)});
    if (!worker_->is_alive()) worker_ = test::StartWorker(config_);
    const auto sizes = worker_->Load(model, kNever);
    if (!sizes) {
      EXPECT_THAT(sizes.error().reason,
                  testing::AnyOf("MODEL_REFUSED", "MODEL_MEMORY", "MODEL_TIME"));
      continue;
    }
    ++loaded;
    const auto shared = std::make_shared<ModelSource>(model);
    if (sizes->full_physics < 1000) {
      const Rollout rollout = RestingRollout(shared, *sizes, 3);
      [[maybe_unused]] const auto there = test::ComputeThere(worker_.get(), rollout, 1, 3);
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kTries);
  ExpectThatOthersGoOn();
}

}  // namespace
}  // namespace sap
