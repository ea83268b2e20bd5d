// The answer of a worker that a hostile model has taken over.
#include "server/worlds/slice_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace sap {
namespace {

constexpr int64_t kWorlds = 2;
constexpr int64_t kSteps = 6;
constexpr int64_t kState = 5;
constexpr double kUntouched = -77;

class SliceBlockTest : public testing::Test {
 protected:
  SliceBlockTest() {
    sizes_.full_physics = kState;
    sizes_.integration = 9;
    sizes_.nsensordata = 1;
    slice_.model = std::make_shared<ModelSource>();
    slice_.sizes = &sizes_;
    slice_.settings.every = 2;
    slice_.worlds = kWorlds;
    slice_.steps = kSteps;
    slice_.all_steps = 10;
    slice_.states = states_.data();
    slice_.answered_states = answered_.data();
    slice_.state_stride = 3 * kState;
    slice_.answered_sensors = sensors_.data();
    slice_.sensor_stride = 3;
    slice_.certificates = certificates_.data();
    slice_.certificate_stride = kSteps;
    slice_.checkpoints = checkpoints_.data();
    slice_.progress = progress_.data();
    EXPECT_EQ(block_.Open(), "");
    EXPECT_TRUE(PutSlice(slice_, &block_, &places_));
  }

  WorldProgress& Said(int64_t world) {
    return At<WorldProgress>(block_.head(), places_.progress)[world];
  }
  bool Take() { return TakeSlice(slice_, places_, block_); }

  // All worlds have taken the steps of the slice.
  void SayWhatIsUsual() {
    for (int64_t world = 0; world < kWorlds; ++world) Said(world).steps = kSteps;
    for (int64_t i = 0; i < kWorlds * 4 * kState; ++i) {
      At<double>(block_.head(), places_.answered_states)[i] = static_cast<double>(i);
    }
  }

  ModelSizes sizes_{};
  WorldSlice slice_;
  std::vector<double> states_ = std::vector<double>(kWorlds * kState, 1.0);
  // With a guard behind each.
  std::vector<double> answered_ = std::vector<double>(kWorlds * 3 * kState + 1, kUntouched);
  std::vector<double> sensors_ = std::vector<double>(kWorlds * 3 + 1, kUntouched);
  std::vector<double> checkpoints_ = std::vector<double>(kWorlds * 9 + 1, kUntouched);
  std::vector<sap_mujoco_certificate> certificates_ =
      std::vector<sap_mujoco_certificate>(kWorlds * kSteps);
  std::vector<WorldProgress> progress_ = std::vector<WorldProgress>(kWorlds);
  SharedBlock block_;
  BlockSlice places_;
};

TEST_F(SliceBlockTest, TakesTheRowsOfStepsThatWereTaken) {
  SayWhatIsUsual();
  ASSERT_TRUE(Take());
  EXPECT_EQ(progress_[1].steps, kSteps);
  EXPECT_EQ(answered_[0], 0);
  EXPECT_EQ(answered_[3 * kState - 1], 3 * kState - 1);
  EXPECT_EQ(answered_[3 * kState], 4 * kState);  // worlds are a row further apart in the block
  EXPECT_EQ(answered_.back(), kUntouched);
  EXPECT_EQ(sensors_.back(), kUntouched);
  EXPECT_EQ(checkpoints_.back(), kUntouched);
}

TEST_F(SliceBlockTest, TakesTheLastStateOfAWorldThatEndsBetweenRows) {
  SayWhatIsUsual();
  Said(0).steps = 3;
  Said(0).end = WorldEnd::kRest;
  ASSERT_TRUE(Take());
  EXPECT_EQ(answered_[2 * kState - 1], 2 * kState - 1);  // after step 2, and step 3
  EXPECT_EQ(answered_[2 * kState], kUntouched);
}

TEST_F(SliceBlockTest, RefusesProgressThatCannotBe) {
  const std::function<void(WorldProgress*)> lies[] = {
      [](WorldProgress* said) { said->steps = kSteps + 1; },
      [](WorldProgress* said) { said->steps = -1; },
      [](WorldProgress* said) { said->steps = std::numeric_limits<int64_t>::max(); },
      [](WorldProgress* said) { said->steps = std::numeric_limits<int64_t>::min(); },
      [](WorldProgress* said) { said->end = static_cast<WorldEnd>(9); },
      [](WorldProgress* said) { said->end = WorldEnd::kSteps; },
      [](WorldProgress* said) { said->end = WorldEnd::kFailure; },
      [](WorldProgress* said) {
        said->end = WorldEnd::kFailure;
        said->steps = 0;
        said->code = 99;
      },
      [](WorldProgress* said) { said->slow_s = std::numeric_limits<double>::quiet_NaN(); },
      [](WorldProgress* said) { said->slow_s = -1; },
  };
  for (const auto& lie : lies) {
    SayWhatIsUsual();
    WorldProgress before = Said(1);
    lie(&Said(1));
    EXPECT_FALSE(Take()) << &lie - lies;
    Said(1) = before;
    EXPECT_EQ(progress_[1].steps, 0);
    EXPECT_EQ(answered_[0], kUntouched);
  }
}

TEST_F(SliceBlockTest, MessagesArePrintableAndCertificatesBounded) {
  SayWhatIsUsual();
  WorldProgress& said = Said(0);
  said.steps = 2;
  said.end = WorldEnd::kFailure;
  said.code = 3;
  said.message.fill('\xff');  // and no end
  auto* const certificate = At<sap_mujoco_certificate>(block_.head(), places_.certificates);
  certificate[0] = {-1, std::numeric_limits<int64_t>::max(), -5, 1.5};
  ASSERT_TRUE(Take());
  const std::string text = progress_[0].message.data();
  EXPECT_EQ(text, std::string(progress_[0].message.size() - 1, '?'));
  EXPECT_EQ(certificates_[0].islands, 0);
  EXPECT_EQ(certificates_[0].unsolved, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(certificates_[0].iterations, 0);
}

// Whatever the worker writes into the head, the places are the server's own.
TEST_F(SliceBlockTest, PlacesInTheBlockAreNotReadBack) {
  SayWhatIsUsual();
  std::memset(static_cast<void*>(&block_.head()->slice), 0xee, sizeof(BlockSlice));
  EXPECT_TRUE(Take());
  EXPECT_EQ(answered_[0], 0);
}

TEST_F(SliceBlockTest, GivesTheMemoryOfALargeSliceBack) {
  ASSERT_TRUE(block_.Reserve(int64_t{64} << 20));
  auto* const bytes = reinterpret_cast<unsigned char*>(block_.head());
  bytes[int64_t{60} << 20] = 1;
  block_.Release();
  EXPECT_EQ(bytes[int64_t{60} << 20], 0);
}

}  // namespace
}  // namespace sap
