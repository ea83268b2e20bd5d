// Models are kept by client and hash, within the limits of the client and of all, and the least
// recently used ones go.
#include "server/worlds/model_cache.h"

#include <gtest/gtest.h>

namespace sap::test {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::shared_ptr<HeldModel> Model(uint8_t number, int64_t bytes = kMiB) {
  ModelSource source;
  source.id.fill(number);
  source.files.push_back({"m", std::string(static_cast<size_t>(bytes), 'x')});
  auto model = std::make_shared<HeldModel>();
  model->source = std::make_shared<const ModelSource>(std::move(source));
  return model;
}

ModelId Id(uint8_t number) {
  ModelId id;
  id.fill(number);
  return id;
}

TEST(ModelCacheTest, AModelIsItsClientsAlone) {
  ModelCache cache(100 * kMiB);
  cache.Put("a", 10 * kMiB, Model(1));
  EXPECT_NE(cache.Find("a", Id(1)), nullptr);
  EXPECT_EQ(cache.Find("b", Id(1)), nullptr);
  EXPECT_EQ(cache.Find("a", Id(2)), nullptr);
}

TEST(ModelCacheTest, TheLeastRecentlyUsedModelOfTheClientGoes) {
  ModelCache cache(100 * kMiB);
  cache.Put("other", 4 * kMiB, Model(9));
  for (const uint8_t i : {1, 2, 3}) cache.Put("a", 4 * kMiB, Model(i));
  cache.Find("a", Id(1));
  cache.Put("a", 4 * kMiB, Model(4));
  EXPECT_NE(cache.Find("a", Id(1)), nullptr);
  EXPECT_EQ(cache.Find("a", Id(2)), nullptr);
  EXPECT_NE(cache.Find("a", Id(3)), nullptr);
  EXPECT_NE(cache.Find("other", Id(9)), nullptr);
}

TEST(ModelCacheTest, AtTheLimitOfAllTheLeastRecentlyUsedOneOfAnybodyGoes) {
  ModelCache cache(4 * kMiB);
  for (const uint8_t i : {1, 2, 3})
    cache.Put(std::string(1, static_cast<char>('a' + i)), kMiB * 4, Model(i));
  cache.Find("b", Id(1));
  cache.Put("z", 4 * kMiB, Model(4));
  EXPECT_NE(cache.Find("b", Id(1)), nullptr);
  EXPECT_EQ(cache.Find("c", Id(2)), nullptr);
  EXPECT_LE(cache.bytes(), 4 * kMiB);
}

TEST(ModelCacheTest, TheSameModelIsCountedOnce) {
  ModelCache cache(100 * kMiB);
  cache.Put("a", 4 * kMiB, Model(1));
  const int64_t bytes = cache.bytes();
  cache.Put("a", 4 * kMiB, Model(1));
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(cache.models(), 1);
}

TEST(ModelCacheTest, AModelBeyondALimitIsRefused) {
  const ModelCache cache(4 * kMiB);
  EXPECT_TRUE(cache.CheckSize(2 * kMiB, 2 * kMiB).has_value());
  EXPECT_EQ(cache.CheckSize(2 * kMiB + 1, 2 * kMiB).error().reason, "CLIENT_MODELS");
  EXPECT_EQ(cache.CheckSize(4 * kMiB + 1, 9 * kMiB).error().reason, "CLIENT_MODELS");
}

TEST(ModelCacheTest, TwoHundredModelsLeaveNothingOnceTheyAreDropped) {
  ModelCache cache(100 * kMiB);
  for (int i = 0; i < 200; ++i) cache.Put("a", 64 * kMiB, Model(static_cast<uint8_t>(i)));
  EXPECT_LE(cache.bytes(), 64 * kMiB);
  for (int i = 0; i < 200; ++i) cache.Drop("a", Id(static_cast<uint8_t>(i)));
  EXPECT_EQ(cache.bytes(), 0);
  cache.Put("a", 64 * kMiB, Model(1));
  cache.Clear();
  EXPECT_EQ(cache.models(), 0);
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(StepTimeTest, LongSlicesTellTheTimeOfAStep) {
  StepTime time;
  EXPECT_FALSE(time.is_measured());
  time.Add(1, 1e-3);  // with what its transport costs
  EXPECT_DOUBLE_EQ(time.seconds(), 1e-3);
  time.Add(200, 2e-3);
  EXPECT_DOUBLE_EQ(time.seconds(), 1e-5);
  time.Add(1, 1e-3);
  EXPECT_LT(time.seconds(), 2e-5);
  for (int i = 0; i < 30; ++i) time.Add(200, 200 * 5e-5);
  EXPECT_NEAR(time.seconds(), 5e-5, 1e-6);
}

}  // namespace
}  // namespace sap::test
