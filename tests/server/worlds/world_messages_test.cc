// Requests of WorldService: each rule of the schema is enforced, and its error names the field.
#include "server/worlds/world_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <functional>
#include <limits>

#include "tests/server/worlds/blocking_worlds.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(WorldMessagesTest, VersionsHaveTheNamesOfMujoco) {
  EXPECT_EQ(NameOfVersion(4'000'000), "4.0.0");
  EXPECT_EQ(NameOfVersion(3'017'000), "3.17.0");
  EXPECT_EQ(NameOfVersion(337), "3.3.7");
}

struct BadModel {
  std::string field;
  std::string message;
  std::function<void(v1::PutModelRequest*)> change;
};

TEST(WorldMessagesTest, ABadModelIsRefusedByName) {
  const auto name = [](const std::string& text) {
    return [text](v1::PutModelRequest* request) { request->mutable_files(0)->set_name(text); };
  };
  const std::vector<BadModel> cases{
      {"kind", "is 0", [](auto* request) { request->set_kind(v1::MODEL_KIND_UNSPECIFIED); }},
      {"kind", "is 9", [](auto* request) { request->set_kind(static_cast<v1::ModelKind>(9)); }},
      {"files", "has 0 files", [](auto* request) { request->clear_files(); }},
      {"files", "has 1001 files",
       [](auto* request) {
         while (request->files_size() < 1001) request->add_files();
       }},
      {"files", "a binary model has 1",
       [](auto* request) {
         request->set_kind(v1::MODEL_KIND_MJB);
         request->add_files();
       }},
      {"files[0].name", "empty part", name("")},
      {"files[0].name", "empty part", name("/etc/passwd")},
      {"files[0].name", "empty part", name("a//b")},
      {"files[0].name", "leaves its folder", name("a/../../b")},
      {"files[0].name", "leaves its folder", name("..")},
      {"files[0].name", "control character", name(std::string("a\0b", 3))},
      {"files[0].name", "more than 256 bytes", name(std::string(257, 'a'))},
      {"files[1].name", "an earlier file has",
       [](auto* request) { request->add_files()->set_name("MODEL.xml"); }}};
  for (const BadModel& bad : cases) {
    v1::PutModelRequest request = BlockingWorlds::Model();
    bad.change(&request);
    const auto source = DecodeModel(&request, kVersion);
    ASSERT_FALSE(source.has_value()) << bad.field << " " << bad.message;
    EXPECT_EQ(source.error().code, ServiceCode::kInvalidArgument);
    EXPECT_EQ(source.error().field, bad.field);
    EXPECT_THAT(source.error().message, HasSubstr(bad.message));
  }
}

TEST(WorldMessagesTest, AnotherVersionIsRefusedWithBoth) {
  v1::PutModelRequest request = BlockingWorlds::Model();
  request.set_mujoco_version(3'017'000);
  const auto source = DecodeModel(&request, kVersion);
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().code, ServiceCode::kFailedPrecondition);
  EXPECT_EQ(source.error().reason, "MUJOCO_VERSION");
  EXPECT_EQ(source.error().message, "the model is of MuJoCo 3.17.0; this server steps 4.0.0");
}

TEST(WorldMessagesTest, TheHashIsThatOfTheSchema) {
  v1::PutModelRequest request = BlockingWorlds::Model("<x/>");
  request.add_files()->set_name("b");
  const auto source = DecodeModel(&request, kVersion);
  ASSERT_TRUE(source.has_value());
  const auto number = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
    return text;
  };
  const std::string text = "sap.v1.model" + number(kVersion, 4) + number(2, 4) + number(2, 4) +
                           number(9, 8) + number(4, 8) + "model.xml" + "<x/>" + number(1, 8) +
                           number(0, 8) + "b";
  ModelId expected;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), expected.data());
  EXPECT_EQ(HashOf(*source, kVersion), expected);
}

v1::AdvanceRequest GoodRequest() {
  v1::AdvanceRequest request;
  request.set_model_id(std::string(32, 'a'));
  request.set_worlds(2);
  request.set_steps(3);
  for (int i = 0; i < 2 * kFullPhysics; ++i) request.add_states(i);
  return request;
}

struct BadAdvance {
  std::string field;
  std::string message;
  std::function<void(v1::AdvanceRequest*)> change;
};

std::vector<BadAdvance> BadAdvances() {
  using Component = v1::ControlComponent;
  return {
      {"model_id", "has 31 bytes", [](auto* r) { r->set_model_id(std::string(31, 'a')); }},
      {"worlds", "is 0", [](auto* r) { r->set_worlds(0); }},
      {"worlds", "is 65537", [](auto* r) { r->set_worlds(65537); }},
      {"steps", "is 0", [](auto* r) { r->set_steps(0); }},
      {"steps", "is 1000001", [](auto* r) { r->set_steps(1'000'001); }},
      {"every", "is 4", [](auto* r) { r->set_every(4); }},
      {"every", "is 0", [](auto* r) { r->set_every(0); }},
      {"state_kind", "is 7", [](auto* r) { r->set_state_kind(static_cast<v1::StateKind>(7)); }},
      {"answered_kind", "is 7",
       [](auto* r) { r->set_answered_kind(static_cast<v1::StateKind>(7)); }},
      {"states", "has 7 numbers", [](auto* r) { r->add_states(0); }},
      {"states", "10 are needed", [](auto* r) { r->set_state_kind(v1::STATE_KIND_INTEGRATION); }},
      {"controls", "has 1 numbers", [](auto* r) { r->add_controls(0); }},
      {"controls", "12 are needed",
       [](auto* r) { r->add_control_components(v1::CONTROL_COMPONENT_CTRL); }},
      {"control_components[0]", "is 0",
       [](auto* r) { r->add_control_components(v1::CONTROL_COMPONENT_UNSPECIFIED); }},
      {"control_components[0]", "is 8",
       [](auto* r) { r->add_control_components(static_cast<Component>(8)); }},
      {"control_components[1]", "as an earlier one",
       [](auto* r) {
         r->add_control_components(v1::CONTROL_COMPONENT_CTRL);
         r->add_control_components(v1::CONTROL_COMPONENT_CTRL);
       }},
      {"law", "is 9", [](auto* r) { r->set_law(static_cast<v1::WorldLaw>(9)); }},
      {"relative_tolerance", "is 0", [](auto* r) { r->set_relative_tolerance(0); }},
      {"relative_tolerance", "is NaN", [](auto* r) { r->set_relative_tolerance(kNaN); }},
      {"relative_tolerance", "is the model's",
       [](auto* r) {
         r->set_law(v1::WORLD_LAW_RUN);
         r->set_relative_tolerance(1e-3);
       }},
      {"max_iterations", "is 0", [](auto* r) { r->set_max_iterations(0); }},
      {"max_iterations", "is 10001", [](auto* r) { r->set_max_iterations(10'001); }},
      {"max_iterations", "is the model's",
       [](auto* r) {
         r->set_law(v1::WORLD_LAW_RUN);
         r->set_max_iterations(5);
       }},
      {"until.speed", "is 0", [](auto* r) { r->mutable_until(); }},
      {"until.speed", "is NaN", [](auto* r) { r->mutable_until()->set_speed(kNaN); }},
      {"until.duration", "is -1",
       [](auto* r) {
         r->mutable_until()->set_speed(1);
         r->mutable_until()->set_duration(-1);
       }},
      {"rested", "has 1 numbers", [](auto* r) { r->add_rested(0); }},
      {"rested[1]", "is -1", [](auto* r) {
         r->add_rested(0);
         r->add_rested(-1);
       }}};
}

TEST(WorldMessagesTest, ABadCallIsRefusedByName) {
  for (const BadAdvance& bad : BadAdvances()) {
    v1::AdvanceRequest request = GoodRequest();
    bad.change(&request);
    auto plan = DecodeAdvance(request, EngineLimits());
    ServiceStatus status;
    if (plan) {
      status = CheckArrays(request, SizesOfFake(), 1 << 20, &*plan);
    } else {
      status = tl::unexpected(plan.error());
    }
    ASSERT_FALSE(status.has_value()) << bad.field << " " << bad.message;
    EXPECT_EQ(status.error().code, ServiceCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, bad.field) << bad.message;
    EXPECT_THAT(status.error().message, HasSubstr(bad.message));
  }
}

TEST(WorldMessagesTest, StatesThatAreNotFiniteAreTaken) {
  v1::AdvanceRequest request = GoodRequest();
  request.set_states(0, kNaN);
  auto plan = DecodeAdvance(request, EngineLimits());
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(CheckArrays(request, SizesOfFake(), 1 << 20, &*plan).has_value());
}

TEST(WorldMessagesTest, SizesThatNoModelHasAreSeen) {
  EXPECT_TRUE(ArePlausible(SizesOfFake()));
  ModelSizes sizes = SizesOfFake();
  sizes.nv = -1;
  EXPECT_FALSE(ArePlausible(sizes));
  sizes = SizesOfFake();
  sizes.control[3] = 1 << 30;
  EXPECT_FALSE(ArePlausible(sizes));
}

}  // namespace
}  // namespace sap::test
