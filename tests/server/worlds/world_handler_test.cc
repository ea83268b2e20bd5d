// Who gets which worker and which model, and what a client is refused.
#include "server/worlds/world_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/worlds/blocking_worlds.h"

namespace sap::test {
namespace {

CallContext CallOf(ClientAccount* account) {
  CallContext call;
  call.account = account;
  return call;
}

TEST(WorldHandlerTest, AModelIsPutOnceAndHasItsSizes) {
  BlockingWorlds worlds;
  v1::PutModelResponse first;
  ASSERT_TRUE(worlds.Put(BlockingWorlds::Model(), &first).has_value());
  EXPECT_EQ(first.model_id().size(), 32u);
  EXPECT_EQ(first.sizes().nsensordata(), static_cast<uint32_t>(kSensors));
  EXPECT_EQ(first.sizes().integration(), static_cast<uint32_t>(kIntegration));
  v1::PutModelResponse second;
  ASSERT_TRUE(worlds.Put(BlockingWorlds::Model(), &second).has_value());
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  EXPECT_EQ(worlds.script()->loads, 1);
  EXPECT_EQ(worlds.handler()->admission().calls(), 0);
}

TEST(WorldHandlerTest, AModelThatCannotBeLoadedIsNotKept) {
  BlockingWorlds worlds;
  worlds.script()->load_refusal = "MODEL_MEMORY";
  v1::PutModelResponse response;
  EXPECT_EQ(worlds.Put(BlockingWorlds::Model(), &response).error().reason, "MODEL_MEMORY");
  EXPECT_EQ(worlds.worlds()->models().models(), 0);
  EXPECT_EQ(worlds.metrics()->refusals().at("MODEL_MEMORY"), 1u);
}

TEST(WorldHandlerTest, ANewWorkerLoadsTheModelThatItSteps) {
  BlockingWorlds worlds;
  const v1::AdvanceRequest request = worlds.Request(1, 1);
  v1::AdvanceResponse answer;
  ASSERT_TRUE(worlds.Advance(request, &answer).has_value());
  EXPECT_EQ(worlds.script()->loads, 1);
  worlds.script()->deaths = {{0, 1}};
  ASSERT_TRUE(worlds.Advance(request, &answer).has_value());
  EXPECT_EQ(worlds.script()->loads, 2);
}

TEST(WorldHandlerTest, AWorkerServesOneClientInItsLife) {
  BlockingWorlds worlds;
  const auto a = worlds.handler()->admission().AccountOf("a");
  const auto b = worlds.handler()->admission().AccountOf("b");
  const auto c = worlds.handler()->admission().AccountOf("c");
  worlds.Put(CallOf(a.get()));
  worlds.Put(CallOf(a.get()), "<other/>");
  EXPECT_EQ(worlds.script()->started, 1);
  worlds.Put(CallOf(b.get()));
  EXPECT_EQ(worlds.script()->started, 2);
  EXPECT_EQ(worlds.script()->alive, 2);
  // One thread and the reserved one: no third worker is kept.
  worlds.Put(CallOf(c.get()));
  EXPECT_EQ(worlds.script()->started, 3);
  EXPECT_EQ(worlds.script()->alive, 2);
  EXPECT_EQ(worlds.worlds()->workers().ended(WorkerEnd::kOtherClient), 1u);
  worlds.Put(CallOf(a.get()), "<third/>");
  EXPECT_EQ(worlds.script()->started, 4);
}

TEST(WorldHandlerTest, AnotherClientDoesNotGetAModelByItsHash) {
  BlockingWorlds worlds;
  const auto other = worlds.handler()->admission().AccountOf("other");
  const v1::AdvanceRequest request = worlds.Request(1, 1);
  v1::AdvanceResponse answer;
  EXPECT_TRUE(worlds.Advance(request, &answer).has_value());
  const ServiceStatus status = worlds.Advance(request, &answer, CallOf(other.get()));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kNotFound);
  EXPECT_EQ(status.error().reason, "MODEL");
}

TEST(WorldHandlerTest, ATokenCanHaveNoWorldsAndALimitOfModels) {
  BlockingWorlds worlds;
  const auto account = worlds.handler()->admission().AccountOf("a");
  Entitlements entitlements;
  entitlements.max_model_bytes = 2000;
  account->SetEntitlements(entitlements);
  v1::PutModelResponse response;
  const CallContext call = CallOf(account.get());
  EXPECT_TRUE(worlds.Put(BlockingWorlds::Model(), &response, call).has_value());
  EXPECT_EQ(
      worlds.Put(BlockingWorlds::Model(std::string(2000, ' ')), &response, call).error().reason,
      "CLIENT_MODELS");
  entitlements.worlds = false;
  account->SetEntitlements(entitlements);
  EXPECT_EQ(worlds.Put(BlockingWorlds::Model(), &response, call).error().code,
            ServiceCode::kPermissionDenied);
  v1::AdvanceResponse answer;
  EXPECT_EQ(worlds.Advance(worlds.Request(1, 1), &answer, call).error().code,
            ServiceCode::kPermissionDenied);
}

TEST(WorldHandlerTest, WhereMemoryRunsShortModelsAndIdleWorkersGoFirst) {
  BlockingWorlds worlds;
  const v1::AdvanceRequest request = worlds.Request(1, 1);
  EXPECT_EQ(worlds.script()->alive, 1);
  EXPECT_GT(worlds.handler()->counted_bytes(), 1000);
  int looks = 0;
  const auto memory = [&] {
    const int64_t resident = looks++ == 0 ? 90 : 50;
    return ProcessMemory{resident, 100};
  };
  worlds.handler()->Sweep(memory);
  EXPECT_EQ(worlds.script()->alive, 0);
  EXPECT_FALSE(worlds.handler()->admission().short_of_memory());
  v1::AdvanceResponse answer;
  EXPECT_EQ(worlds.Advance(request, &answer).error().reason, "MODEL");
  worlds.Put();
  EXPECT_TRUE(worlds.Advance(request, &answer).has_value());
}

TEST(WorldHandlerTest, TheInfoNamesVersionAndLibrary) {
  BlockingWorlds worlds;
  v1::GetServerInfoResponse info;
  worlds.worlds()->Describe(&info);
  EXPECT_EQ(info.mujoco_version(), kVersion);
  EXPECT_EQ(info.mujoco_library_sha256(), std::string(32, '\7'));
}

}  // namespace
}  // namespace sap::test
