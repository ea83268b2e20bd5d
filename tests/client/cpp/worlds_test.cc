// Worlds at one or several servers, of which some lose calls, forget models or refuse: each step of
// each world is that of a loop, and what fails is named.
#include "client/cpp/worlds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "client/cpp/client.h"
#include "tests/support/counting_worlds.h"

namespace sap::client::worlds {
namespace {

using std::chrono::seconds;
using test::CountingWorlds;
using testing::Each;
using testing::HasSubstr;

constexpr const char* kFirst = "1.0 x86-64 0000000000000001";
constexpr const char* kSecond = "1.0 x86-64 0000000000000002";

// N worlds with arrays for K steps.
struct Worlds {
  Worlds(int64_t worlds, int64_t count, int64_t every = 1)
      : n(worlds), steps(count), rows((count + every - 1) / every) {
    models.assign(n, &*model);
    for (int64_t i = 0; i < n; ++i) states.insert(states.end(), {0.0, static_cast<double>(i)});
    for (int64_t i = 0; i < n * steps; ++i) controls.push_back(std::sin(static_cast<double>(i)));
    answered.resize(2 * n * rows);
    sensors.resize(n * rows);
    final_states.resize(3 * n);
    certificates.resize(n * steps);
    outcomes.resize(n);
    view = {.models = models,
            .steps = steps,
            .every = every,
            .states = states,
            .control_components = components,
            .controls = controls,
            .holds_after_warning = true,
            .answered_states = answered,
            .sensors = sensors,
            .final_states = final_states,
            .certificates = certificates,
            .outcomes = outcomes};
  }
  Worlds(const Worlds&) = delete;
  Worlds& operator=(const Worlds&) = delete;

  // The position of a world after each step, as the server's comment says, while `taken` steps.
  double Position(int64_t world, int64_t taken) const {
    double x = static_cast<double>(world), h = 0;
    for (int64_t step = 0; step < taken; ++step) {
      h = h / 4 + controls[world * steps + step];
      x += h;
    }
    return x;
  }
  // Whether the rows of a world are those of a loop that ends after `taken` steps.
  void ExpectRows(int64_t world, int64_t taken) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t step = std::min(std::min((row + 1) * view.every, steps), taken);
      EXPECT_EQ(answered[2 * (world * rows + row)], static_cast<double>(step)) << world;
      EXPECT_EQ(answered[2 * (world * rows + row) + 1], Position(world, step)) << world;
      EXPECT_EQ(sensors[world * rows + row], 2 * Position(world, step)) << world;
    }
    EXPECT_EQ(final_states[3 * world + 1], Position(world, taken)) << world;
    for (int64_t step = 0; step < steps; ++step) {
      const auto islands = certificates[world * steps + step].islands;
      EXPECT_EQ(islands, step < taken ? step + 1 : 0) << world << " " << step;
    }
    EXPECT_EQ(outcomes[world].steps, taken) << world;
  }
  void ExpectAll() const {
    for (int64_t world = 0; world < n; ++world) {
      ExpectRows(world, steps);
      EXPECT_EQ(outcomes[world].end, WorldEnd::kSteps);
    }
  }

  int64_t n, steps, rows;
  tl::expected<WorldModel, Error> model{
      WorldModel::Make(4'000'000, ModelKind::kMjb, {{"", "bytes of a model"}})};
  std::vector<const WorldModel*> models;
  std::vector<ControlComponent> components{ControlComponent::kCtrl};
  std::vector<double> states, controls, answered, sensors, final_states;
  std::vector<WorldCertificate> certificates;
  std::vector<WorldOutcome> outcomes;
  WorldsView view;
};

Client Connect(const std::string& address, bool allow_mixed = false) {
  auto client = Client::Connect(address, {.connect_timeout = seconds(0),
                                          .reconnect_within = seconds(60),
                                          .allow_mixed_servers = allow_mixed});
  EXPECT_TRUE(client.has_value()) << client.error().message;
  return std::move(*client);
}

Client Connect(const CountingWorlds& first, const CountingWorlds& second) {
  return Connect(first.address() + "," + second.address());
}

// Makes the speed of the model known, so that later calls are cut by it.
void Measure(Client* client) {
  for (int i = 0; i < 3; ++i) {
    Worlds some(4, 30);
    ASSERT_TRUE(client->Advance(some.view));
  }
}

TEST(WorldsTest, RowsAreThoseOfALoopWhateverTheServers) {
  CountingWorlds first(kFirst), second(kSecond);
  for (const std::string& address : {first.address(), first.address() + "," + second.address()}) {
    Client client = Connect(address);
    for (const int64_t every : {1, 7}) {
      for (int call = 0; call < 3; ++call) {
        Worlds worlds(13, 200, every);
        const auto advanced = client.Advance(worlds.view);
        ASSERT_TRUE(advanced) << advanced.error().message;
        worlds.ExpectAll();
      }
    }
  }
  EXPECT_EQ(first.puts(), 1);
  EXPECT_EQ(second.puts(), 1);
}

TEST(WorldsTest, WorkIsDealtToAllServers) {
  CountingWorlds first(kFirst), second(kSecond);
  first.set_step_s(1e-5);
  second.set_step_s(1e-5);
  Client client = Connect(first, second);
  Measure(&client);
  const size_t before = second.slices().size();
  Worlds worlds(64, 100);
  ASSERT_TRUE(client.Advance(worlds.view));
  worlds.ExpectAll();
  EXPECT_GT(first.slices().size(), 1u);
  EXPECT_GT(second.slices().size(), before);
}

TEST(WorldsTest, AModelIsPutAgainWhereItIsForgotten) {
  CountingWorlds server(kFirst);
  Client client = Connect(server.address());
  for (int call = 0; call < 3; ++call) {
    Worlds worlds(3, 4);
    ASSERT_TRUE(client.Advance(worlds.view));
    worlds.ExpectAll();
    if (call == 0) server.Forget();
  }
  EXPECT_EQ(server.puts(), 2);
}

TEST(WorldsTest, ALostSliceGoesToAnotherServerAndSaysSo) {
  CountingWorlds first(kFirst), second(kSecond);
  Client client = Connect(first, second);
  Measure(&client);
  const size_t before = first.attempts().size() + second.attempts().size();
  first.EndNext({grpc::StatusCode::INTERNAL, "the connection was reset", "", false});
  Worlds worlds(64, 200);
  ASSERT_TRUE(client.Advance(worlds.view));
  worlds.ExpectAll();
  EXPECT_GT(first.attempts().size() + second.attempts().size(), before);
  EXPECT_THAT(second.attempts(), testing::Contains("2"));
  EXPECT_THAT(first.attempts(), Each(""));
}

TEST(WorldsTest, ASliceThatIsLostTwiceIsReturned) {
  CountingWorlds first(kFirst), second(kSecond);
  Client client = Connect(first, second);
  for (CountingWorlds* server : {&first, &second}) {
    for (int i = 0; i < 8; ++i) {
      server->EndNext({grpc::StatusCode::UNAVAILABLE, "the connection was reset", "", false});
    }
  }
  Worlds worlds(1, 5);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(advanced.error().lost_attempts, 2);
  EXPECT_THAT(advanced.error().message, HasSubstr("worlds 0 to 0, steps 0 to 4: "));
}

TEST(WorldsTest, AServerThatIsNotThereIsPassedBy) {
  std::string gone;
  { gone = CountingWorlds(kFirst).address(); }
  CountingWorlds second(kSecond);
  Client client = Connect(gone + "," + second.address());
  Worlds worlds(16, 100);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_TRUE(advanced) << advanced.error().message;
  worlds.ExpectAll();
}

TEST(WorldsTest, AnswersOfOtherBuildsAndLibrariesAreNotMixed) {
  for (const auto& [identity, library] : {std::pair("1.1 x86-64 0000000000000002", "library"),
                                          std::pair(kSecond, "another library")}) {
    CountingWorlds first(kFirst), second(identity, library);
    Client client = Connect(first, second);
    Measure(&client);
    Worlds worlds(64, 100);
    ASSERT_TRUE(client.Advance(worlds.view));
    worlds.ExpectAll();
    // The one whose answer came first has them all; the other one at most what was on its way.
    const auto refused = std::min(first.slices().size(), second.slices().size());
    EXPECT_LE(refused, 4 * 2u);
  }
}

TEST(WorldsTest, AWorldThatFailsIsNamedAndTheOthersAreAnswered) {
  CountingWorlds first(kFirst), second(kSecond);
  Client client = Connect(first, second);
  for (int call = 0; call < 2; ++call) {
    Worlds worlds(9, 100);
    worlds.controls[4 * 100 + 70] = CountingWorlds::kFails;
    worlds.controls[7 * 100 + 65] = CountingWorlds::kWarns;
    ASSERT_TRUE(client.Advance(worlds.view));
    for (const int64_t world : {0, 1, 2, 3, 5, 6, 8}) worlds.ExpectRows(world, 100);
    worlds.ExpectRows(4, 70);
    worlds.ExpectRows(7, 66);
    ASSERT_TRUE(worlds.outcomes[4].failure);
    EXPECT_EQ(worlds.outcomes[4].failure->message, "as the control says");
    EXPECT_EQ(worlds.outcomes[4].failure->code, ErrorCode::kFailedPrecondition);
    EXPECT_EQ(worlds.outcomes[7].end, WorldEnd::kWarning);
    EXPECT_FALSE(worlds.outcomes[7].failure);
  }
}

TEST(WorldsTest, AWorldThatEndsItsCallFailsAlone) {
  CountingWorlds server(kFirst);
  Client client = Connect(server.address());
  Measure(&client);
  server.EndNext({.code = grpc::StatusCode::RESOURCE_EXHAUSTED,
                  .message = "step 2 of world 3 took longer than 2 s",
                  .reason = "WORLD_STEP_TIME",
                  .metadata = {{"world", "3"}, {"step", "2"}}});
  server.Forget();
  Worlds worlds(6, 8);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_TRUE(advanced) << advanced.error().message;
  for (const int64_t world : {0, 1, 2, 4, 5}) worlds.ExpectRows(world, 8);
  ASSERT_TRUE(worlds.outcomes[3].failure);
  EXPECT_EQ(worlds.outcomes[3].steps, 2);
  EXPECT_EQ(worlds.outcomes[3].failure->message, "it took longer than 2 s");
  EXPECT_EQ(worlds.outcomes[3].failure->reason, "WORLD_STEP_TIME");
}

TEST(WorldsTest, AReasonOfAWorldWithoutItsNumberEndsTheCall) {
  using Metadata = std::map<std::string, std::string>;
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"world", "6"}, {"step", "2"}}, Metadata{{"world", "0"}},
        Metadata{{"world", "0"}, {"step", "8"}}, Metadata{{"world", "-1"}, {"step", "2"}},
        Metadata{{"world", "3x"}, {"step", "2"}}}) {
    CountingWorlds server(kFirst);
    Client client = Connect(server.address());
    Measure(&client);
    server.EndNext({.code = grpc::StatusCode::RESOURCE_EXHAUSTED,
                    .message = "step 2 of world 3: why",
                    .reason = "WORLD_LOST",
                    .metadata = metadata});
    Worlds worlds(6, 8);
    const auto advanced = client.Advance(worlds.view);
    ASSERT_FALSE(advanced);
    EXPECT_EQ(advanced.error().reason, "WORLD_LOST");
  }
}

TEST(WorldsTest, CallsAreMadeSmallerWhereAnAnswerIsTooLarge) {
  CountingWorlds server(kFirst);
  server.set_most_numbers(40);
  Client client = Connect(server.address());
  Worlds worlds(10, 50);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_TRUE(advanced) << advanced.error().message;
  worlds.ExpectAll();
}

TEST(WorldsTest, AnAnswerThatIsTooLargeForAnyCallIsAnError) {
  CountingWorlds server(kFirst);
  server.set_most_numbers(1);
  Client client = Connect(server.address());
  Worlds worlds(2, 2);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().reason, "ANSWER_BYTES");
}

TEST(WorldsTest, AServerWithoutWorldsIsNamedByItsFlag) {
  CountingWorlds server(kFirst);
  Client client = Connect(server.address());
  Measure(&client);
  server.EndNext({grpc::StatusCode::UNIMPLEMENTED, "", "", /*with_identity=*/false});
  Worlds worlds(2, 2);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(advanced.error().message, HasSubstr("--mujoco-library"));
}

TEST(WorldsTest, WorldsAreNotOfAnEmbeddedServer) {
  Client client = Connect("embedded:");
  Worlds worlds(1, 1);
  const auto advanced = client.Advance(worlds.view);
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().code, ErrorCode::kUnimplemented);
}

TEST(WorldsTest, ACallEndsAtItsDeadline) {
  CountingWorlds server(kFirst);
  server.set_step_s(10);
  Client client = Connect(server.address());
  Worlds worlds(2, 1000);
  const auto advanced = client.Advance(worlds.view, {.deadline = std::chrono::milliseconds(100)});
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().code, ErrorCode::kDeadlineExceeded);
}

TEST(WorldsTest, ACallEndsWhenItIsCancelled) {
  CountingWorlds server(kFirst);
  server.set_step_s(10);
  Client client = Connect(server.address());
  std::atomic<bool> cancelled{false};
  std::thread other([&] {
    while (server.slices().empty()) std::this_thread::yield();
    cancelled = true;
  });
  Worlds worlds(2, 1000);
  const auto advanced = client.Advance(worlds.view, {.call = {.cancelled = &cancelled}});
  other.join();
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().code, ErrorCode::kCancelled);
}

TEST(WorldsTest, ArraysThatDoNotAgreeAreNamed) {
  const auto field_of = [](const WorldsView& view) {
    const auto checked = CheckWorlds(view);
    return checked ? "" : checked.error().field;
  };
  Worlds worlds(4, 6, 2);
  EXPECT_EQ(field_of(worlds.view), "");
  const auto changed = [&](const auto& change) {
    WorldsView view = worlds.view;
    change(&view);
    return field_of(view);
  };
  EXPECT_EQ(changed([](auto* v) { v->models = {}; }), "models");
  EXPECT_EQ(changed([](auto* v) { v->steps = 0; }), "steps");
  EXPECT_EQ(changed([](auto* v) { v->every = 7; }), "every");
  EXPECT_EQ(changed([](auto* v) { v->states = {}; }), "states");
  EXPECT_EQ(changed([](auto* v) { v->states = v->states.first(7); }), "states");
  EXPECT_EQ(changed([](auto* v) { v->controls = v->controls.first(23); }), "controls");
  EXPECT_EQ(changed([](auto* v) { v->control_components = {}; }), "controls");
  EXPECT_EQ(changed([](auto* v) { v->answered_states = v->answered_states.first(11); }),
            "answered_states");
  EXPECT_EQ(changed([](auto* v) { v->sensors = v->sensors.first(11); }), "sensors");
  EXPECT_EQ(changed([](auto* v) { v->final_states = v->final_states.first(11); }), "final_states");
  EXPECT_EQ(changed([](auto* v) { v->certificates = v->certificates.first(1); }), "certificates");
  EXPECT_EQ(changed([](auto* v) { v->outcomes = v->outcomes.first(3); }), "outcomes");
}

TEST(WorldsTest, AModelHasFilesAndABinaryOneHasOne) {
  EXPECT_FALSE(WorldModel::Make(4'000'000, ModelKind::kMjb, {}));
  EXPECT_FALSE(WorldModel::Make(4'000'000, ModelKind::kMjb, {{"a", ""}, {"b", ""}}));
  EXPECT_TRUE(WorldModel::Make(4'000'000, ModelKind::kMjcf, {{"a.xml", ""}, {"b.xml", ""}}));
}

}  // namespace
}  // namespace sap::client::worlds
