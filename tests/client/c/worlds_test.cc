// Worlds behind the C interface, at servers without MuJoCo that count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/c/sap_islands_worlds.h"
#include "tests/client/c/c_objects.h"
#include "tests/support/counting_worlds.h"

namespace sap::test {
namespace {

using testing::Each;
using testing::HasSubstr;

// N worlds whose control is 1 in each step, with arrays for K steps.
struct CWorlds {
  CWorlds(int64_t n, int64_t steps) {
    const char text[] = "bytes of a model";
    const sap_model_file file = {"", {text, sizeof text}};
    const Answer answer;
    sap_world_model* made = nullptr;
    EXPECT_EQ(sap_world_model_create(SAP_MODEL_MJB, 4'000'000, 1, &file, &made, answer.get()),
              SAP_OK);
    model.reset(made);
    models.assign(n, made);
    states.resize(2 * n);
    controls.assign(n * steps, 1.0);
    answered.resize(2 * n * steps);
    sensors.resize(n * steps);
    final_states.resize(3 * n);
    certificates.resize(n * steps);
    ends.resize(n);
    taken.resize(n);
    warnings.resize(n);
    rested.resize(n);
    codes.resize(n, -1);
    messages.resize(n * SAP_WORLD_MESSAGE);
    worlds.struct_size = sizeof worlds;
    worlds.worlds = n;
    worlds.steps = steps;
    worlds.models = models.data();
    worlds.states = {states.data(), 2 * n};
    worlds.control_components = {&component, 1};
    worlds.controls = {controls.data(), n * steps};
    worlds.answered_states = {answered.data(), 2 * n * steps};
    worlds.sensors = {sensors.data(), n * steps};
    worlds.final_states = {final_states.data(), 3 * n};
    worlds.certificates = certificates.data();
    worlds.ends = ends.data();
    worlds.taken = taken.data();
    worlds.warnings = warnings.data();
    worlds.rested_after = rested.data();
    worlds.codes = codes.data();
    worlds.messages = messages.data();
  }

  Owned<sap_world_model, sap_world_model_free> model;
  int32_t component{SAP_CONTROL_CTRL};
  std::vector<const sap_world_model*> models;
  std::vector<double> states, controls, answered, sensors, final_states, rested;
  std::vector<sap_world_certificate> certificates;
  std::vector<int32_t> ends, codes;
  std::vector<int64_t> taken;
  std::vector<uint32_t> warnings;
  std::vector<char> messages;
  sap_worlds worlds{};
};

TEST(CWorldsTest, EveryArrayIsWritten) {
  CountingWorlds first("1.0 x86-64 1"), second("1.0 x86-64 2");
  const Client client(first.address() + "," + second.address());
  CWorlds call(5, 200);
  const Answer answer;
  ASSERT_EQ(sap_worlds_advance(client.get(), &call.worlds, nullptr, answer.get()), SAP_OK)
      << answer.error().message;
  double x = 0, h = 0;
  for (int64_t step = 0; step < 200; ++step) {
    h = h / 4 + 1;
    x += h;
    for (int64_t world = 0; world < 5; ++world) {
      const int64_t row = world * 200 + step;
      ASSERT_EQ(call.answered[2 * row], static_cast<double>(step + 1));
      ASSERT_EQ(call.answered[2 * row + 1], x);
      ASSERT_EQ(call.sensors[row], 2 * x);
      ASSERT_EQ(call.certificates[row].islands, step + 1);
      ASSERT_EQ(call.certificates[row].bound, x);
    }
  }
  EXPECT_EQ(call.final_states[3 * 4 + 2], h);
  EXPECT_THAT(call.ends, Each(SAP_WORLD_END_STEPS));
  EXPECT_THAT(call.taken, Each(200));
  EXPECT_THAT(call.codes, Each(SAP_OK));
}

TEST(CWorldsTest, AWorldThatFailsIsNamedAndTheCallIsNot) {
  CountingWorlds server("1.0 x86-64 1");
  const Client client(server.address());
  CWorlds call(3, 10);
  call.controls[10 + 6] = CountingWorlds::kFails;
  call.controls[20 + 3] = CountingWorlds::kWarns;
  call.worlds.holds_after_warning = 1;
  const Answer answer;
  ASSERT_EQ(sap_worlds_advance(client.get(), &call.worlds, nullptr, answer.get()), SAP_OK);
  EXPECT_EQ(call.ends, (std::vector<int32_t>{SAP_WORLD_END_STEPS, SAP_WORLD_END_FAILURE,
                                             SAP_WORLD_END_WARNING}));
  EXPECT_EQ(call.taken, (std::vector<int64_t>{10, 6, 4}));
  EXPECT_EQ(call.codes, (std::vector<int32_t>{SAP_OK, SAP_FAILED_PRECONDITION, SAP_OK}));
  EXPECT_STREQ(call.messages.data() + SAP_WORLD_MESSAGE, "as the control says");
}

TEST(CWorldsTest, StructsThatAreWrongAreNamed) {
  CountingWorlds server("1.0 x86-64 1");
  const Client client(server.address());
  const auto field_of = [&](const auto& change) {
    CWorlds call(2, 4);
    change(&call.worlds);
    const Answer answer;
    EXPECT_EQ(sap_worlds_advance(client.get(), &call.worlds, nullptr, answer.get()),
              SAP_INVALID_ARGUMENT);
    return std::string(answer.error().field);
  };
  EXPECT_EQ(field_of([](sap_worlds* w) { w->struct_size = 7; }), "struct_size");
  EXPECT_EQ(field_of([](sap_worlds* w) { w->worlds = -1; }), "worlds");
  EXPECT_EQ(field_of([](sap_worlds* w) { w->models = nullptr; }), "worlds");
  EXPECT_EQ(field_of([](sap_worlds* w) { w->law = 9; }), "law");
  EXPECT_EQ(field_of([](sap_worlds* w) { w->state_kind = 3; }), "state_kind");
  EXPECT_EQ(field_of([](sap_worlds* w) { w->states.length = 3; }), "states");
  EXPECT_EQ(field_of([](sap_worlds* w) { w->sensors.data = nullptr; }), "sensors");
  const Answer answer;
  EXPECT_EQ(sap_worlds_advance(client.get(), nullptr, nullptr, answer.get()), SAP_INVALID_ARGUMENT);
}

TEST(CWorldsTest, AModelNeedsFiles) {
  const Answer answer;
  sap_world_model* model = nullptr;
  EXPECT_EQ(sap_world_model_create(SAP_MODEL_MJB, 1, 0, nullptr, &model, answer.get()),
            SAP_INVALID_ARGUMENT);
  const sap_model_file file = {"a.xml", {nullptr, 3}};
  EXPECT_EQ(sap_world_model_create(SAP_MODEL_MJCF, 1, 1, &file, &model, answer.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer.error().field, "files[0].content");
  EXPECT_EQ(sap_world_model_create(7, 1, 1, &file, &model, answer.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
}

TEST(CWorldsTest, WorldsAreNotOfThisProcess) {
  const Client client(1);
  CWorlds call(1, 1);
  const Answer answer;
  EXPECT_EQ(sap_worlds_advance(client.get(), &call.worlds, nullptr, answer.get()),
            SAP_UNIMPLEMENTED);
  EXPECT_THAT(answer.error().message, HasSubstr("servers"));
}

}  // namespace
}  // namespace sap::test
