// Calls of Advance: whatever slices they are cut into, and whatever becomes of their workers, the
// answer has the bits of one loop over its worlds and steps.
#include "server/worlds/world_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/server/worlds/blocking_worlds.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

struct Rows {
  std::vector<double> states;
  std::vector<double> sensors;
  std::vector<double> final_states;
};

// The answer by one loop, for worlds that end before the steps that are given.
Rows Reference(const v1::AdvanceRequest& request, const std::map<int, int>& ends = {}) {
  Rows rows;
  const int steps = static_cast<int>(request.steps());
  const int every = static_cast<int>(request.every());
  for (int i = 0; i < static_cast<int>(request.worlds()); ++i) {
    FakeState state{};
    std::copy_n(request.states().data() + i * kFullPhysics, kFullPhysics, state.begin());
    const auto end = ends.find(i);
    for (int k = 0; k < steps; ++k) {
      if (end == ends.end() || k < end->second) {
        StepFake(&state, request.controls().data() + (i * steps + k) * kControls);
      }
      if ((k + 1) % every != 0 && k + 1 != steps) continue;
      rows.states.insert(rows.states.end(), state.begin(), state.begin() + kFullPhysics);
      const auto sensors = SensorsOfFake(state);
      rows.sensors.insert(rows.sensors.end(), sensors.begin(), sensors.end());
    }
    rows.final_states.insert(rows.final_states.end(), state.begin(), state.end());
  }
  return rows;
}

void ExpectEqual(const v1::AdvanceResponse& answer, const Rows& rows, const std::string& what) {
  EXPECT_THAT(answer.states(), testing::ElementsAreArray(rows.states)) << what;
  EXPECT_THAT(answer.sensors(), testing::ElementsAreArray(rows.sensors)) << what;
  EXPECT_THAT(answer.final_states(), testing::ElementsAreArray(rows.final_states)) << what;
}

TEST(WorldCallTest, AnyCutHasTheBitsOfOneLoop) {
  for (const int threads : {1, 3}) {
    for (const int64_t most_steps : {0, 1, 7}) {
      for (const int every : {1, 4, 23}) {
        BlockingWorlds worlds(threads);
        worlds.script()->most_steps = most_steps;
        const v1::AdvanceRequest request = worlds.Request(9, 23, every);
        v1::AdvanceResponse answer;
        ASSERT_TRUE(worlds.Advance(request, &answer).has_value());
        const std::string what = std::to_string(threads) + " threads, " +
                                 std::to_string(most_steps) + " steps, every " +
                                 std::to_string(every);
        ExpectEqual(answer, Reference(request), what);
        ASSERT_EQ(answer.outcomes_size(), 9);
        for (const v1::WorldOutcome& outcome : answer.outcomes()) {
          EXPECT_EQ(outcome.end(), v1::WORLD_END_STEPS);
          EXPECT_EQ(outcome.steps(), 23u);
        }
        ASSERT_EQ(answer.certificates().islands_size(), 9 * 23);
        for (int i = 0; i < 9 * 23; ++i) {
          EXPECT_EQ(answer.certificates().islands(i), static_cast<uint32_t>(i % 23));
          EXPECT_EQ(answer.certificates().unsolved(i), 1u);
          EXPECT_EQ(answer.certificates().iterations(i), static_cast<uint32_t>(2 * (i % 23)));
        }
        EXPECT_EQ(answer.threads(), static_cast<uint32_t>(threads));
        EXPECT_GT(answer.step_time(), 0);
      }
    }
  }
}

TEST(WorldCallTest, FinalStatesGoOnWithTheBitsOfOneCall) {
  BlockingWorlds worlds;
  const v1::AdvanceRequest whole = worlds.Request(3, 20);
  v1::AdvanceRequest part = whole;
  part.set_steps(8);
  part.clear_controls();
  v1::AdvanceRequest rest = part;
  rest.set_steps(12);
  for (int i = 0; i < 3; ++i) {
    const auto from = whole.controls().begin() + i * 20 * kControls;
    part.mutable_controls()->Add(from, from + 8 * kControls);
    rest.mutable_controls()->Add(from + 8 * kControls, from + 20 * kControls);
  }
  v1::AdvanceResponse first;
  ASSERT_TRUE(worlds.Advance(part, &first).has_value());
  *rest.mutable_states() = first.final_states();
  rest.set_state_kind(v1::STATE_KIND_INTEGRATION);
  rest.set_answered_kind(v1::STATE_KIND_FULL_PHYSICS);
  v1::AdvanceResponse second;
  ASSERT_TRUE(worlds.Advance(rest, &second).has_value());
  const Rows reference = Reference(whole);
  EXPECT_THAT(second.final_states(), testing::ElementsAreArray(reference.final_states));
  ASSERT_EQ(second.states_size(), 3 * 12 * kFullPhysics);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 12 * kFullPhysics; ++k) {
      EXPECT_EQ(second.states(i * 12 * kFullPhysics + k),
                reference.states[(i * 20 + 8) * kFullPhysics + k]);
    }
  }
}

TEST(WorldCallTest, RowsAfterTheEndOfAWorldRepeatItsLastState) {
  for (const int64_t most_steps : {0, 1, 5}) {
    for (const int every : {1, 4}) {
      BlockingWorlds worlds(2);
      worlds.script()->most_steps = most_steps;
      worlds.script()->ends = {{1, {0, WorldEnd::kFailure}},
                               {2, {6, WorldEnd::kWarning}},
                               {4, {8, WorldEnd::kRest}},
                               {5, {18, WorldEnd::kFailure}}};
      const v1::AdvanceRequest request = worlds.Request(6, 19, every);
      v1::AdvanceResponse answer;
      ASSERT_TRUE(worlds.Advance(request, &answer).has_value());
      ExpectEqual(answer, Reference(request, {{1, 0}, {2, 6}, {4, 8}, {5, 18}}),
                  std::to_string(most_steps) + " steps, every " + std::to_string(every));
      EXPECT_EQ(answer.outcomes(0).end(), v1::WORLD_END_STEPS);
      EXPECT_EQ(answer.outcomes(1).end(), v1::WORLD_END_FAILURE);
      EXPECT_EQ(answer.outcomes(1).steps(), 0u);
      EXPECT_EQ(answer.outcomes(1).failure().code(), 3);
      EXPECT_EQ(answer.outcomes(1).failure().message(), "an island ? was not solved");
      EXPECT_EQ(answer.outcomes(2).end(), v1::WORLD_END_WARNING);
      EXPECT_EQ(answer.outcomes(2).steps(), 6u);
      EXPECT_FALSE(answer.outcomes(2).has_failure());
      EXPECT_EQ(answer.outcomes(4).end(), v1::WORLD_END_REST);
      EXPECT_EQ(answer.outcomes(5).steps(), 18u);
      EXPECT_EQ(answer.certificates().unsolved(2 * 19 + 5), 1u);
      EXPECT_EQ(answer.certificates().unsolved(2 * 19 + 6), 0u);
    }
  }
}

TEST(WorldCallTest, AWorldThatEndsOneWorkerIsSteppedByAnother) {
  BlockingWorlds worlds(2);
  const v1::AdvanceRequest request = worlds.Request(8, 12);
  worlds.script()->deaths = {{3, 1}, {4, 1}, {7, 1}};
  v1::AdvanceResponse answer;
  ASSERT_TRUE(worlds.Advance(request, &answer).has_value());
  ExpectEqual(answer, Reference(request), "after deaths");
  EXPECT_GE(worlds.worlds()->workers().ended(WorkerEnd::kLost), 3u);
  EXPECT_EQ(worlds.worlds()->workers().in_use(), 0);
}

TEST(WorldCallTest, AWorldThatEndsTwoWorkersEndsItsCallByName) {
  BlockingWorlds worlds(2);
  const v1::AdvanceRequest request = worlds.Request(8, 12);
  worlds.script()->deaths = {{5, 3}};
  v1::AdvanceResponse answer;
  ServiceStatus status = worlds.Advance(request, &answer);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(status.error().reason, "WORLD_LOST");
  EXPECT_THAT(status.error().message, HasSubstr("the second process that this world has ended"));
  ASSERT_TRUE(status.error().world_step);
  EXPECT_EQ(status.error().world_step->world, 5);
  EXPECT_EQ(answer.ByteSizeLong(), 0u);
  // The model is barred until it is put again.
  status = worlds.Advance(request, &answer);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().reason, "MODEL");
  worlds.script()->deaths.clear();
  worlds.Put();
  EXPECT_TRUE(worlds.Advance(request, &answer).has_value());
}

TEST(WorldCallTest, AStepThatTakesTooLongEndsTheCallAndBarsTheModel) {
  BlockingWorlds worlds;
  const v1::AdvanceRequest request = worlds.Request(2, 3);
  worlds.script()->step_takes_too_long = true;
  v1::AdvanceResponse answer;
  EXPECT_EQ(worlds.Advance(request, &answer).error().reason, "WORLD_STEP_TIME");
  EXPECT_EQ(worlds.Advance(request, &answer).error().reason, "MODEL");
}

TEST(WorldCallTest, ACancelledCallEndsAndReleasesAllThatItHeld) {
  BlockingWorlds worlds(2);
  const v1::AdvanceRequest request = worlds.Request(8, 12);
  worlds.script()->waits_for_stop = true;
  std::atomic<bool> cancelled{false};
  CallContext call;
  call.cancelled = &cancelled;
  std::thread canceller([&] {
    while (worlds.script()->waiting == 0) std::this_thread::yield();
    cancelled = true;
  });
  v1::AdvanceResponse answer;
  const ServiceStatus status = worlds.Advance(request, &answer, call);
  canceller.join();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kCancelled);
  EXPECT_EQ(worlds.handler()->admission().calls(), 0);
  EXPECT_EQ(worlds.handler()->admission().bytes(), 0);
}

TEST(WorldCallTest, ADeadlineEndsACall) {
  BlockingWorlds worlds;
  const v1::AdvanceRequest request = worlds.Request(1, 1);
  worlds.script()->waits_for_stop = true;
  CallContext call;
  call.deadline = CallContext::Clock::now() + std::chrono::milliseconds(20);
  v1::AdvanceResponse answer;
  const ServiceStatus status = worlds.Advance(request, &answer, call);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kDeadlineExceeded);
}

TEST(WorldCallTest, AnAnswerBeyondTheLimitIsRefusedBeforeAnythingIsComputed) {
  ServerConfig config;
  config.max_message_bytes = 100'000;
  BlockingWorlds worlds(1, config);
  v1::AdvanceRequest request = worlds.Request(10, 500);
  v1::AdvanceResponse answer;
  ServiceStatus status = worlds.Advance(request, &answer);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().reason, "ANSWER_BYTES");
  EXPECT_EQ(worlds.script()->slices, 0);
  request.set_answers_certificates(false);
  request.set_every(10);
  EXPECT_TRUE(worlds.Advance(request, &answer).has_value());
  EXPECT_EQ(worlds.metrics()->refusals().at("ANSWER_BYTES"), 1u);
}

TEST(WorldCallTest, AnAnswerIsNotLargerThanItIsCounted) {
  BlockingWorlds worlds;
  worlds.script()->ends = {{1, {2, WorldEnd::kFailure}}};
  const v1::AdvanceRequest request = worlds.Request(4, 5);
  auto plan = DecodeAdvance(request, EngineLimits());
  ASSERT_TRUE(plan.has_value());
  ASSERT_TRUE(CheckArrays(request, SizesOfFake(), 1 << 20, &*plan).has_value());
  v1::AdvanceResponse answer;
  ASSERT_TRUE(worlds.Advance(request, &answer).has_value());
  EXPECT_LE(static_cast<int64_t>(answer.ByteSizeLong()), plan->answer_bytes);
  EXPECT_EQ(plan->answer_bytes,
            8 * 4 * (5 * kFullPhysics + 5 * kSensors + kIntegration) + 20 * 4 * 5 + 512 * 4);
}

}  // namespace
}  // namespace sap::test
