// Worlds in slices: each step of each world is in one of them, in order.
#include "client/cpp/transport/world_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace sap::client::world_queue {
namespace {

using Models = std::vector<const WorldModel*>;

// Pointers that only name models.
const WorldModel* Name(uintptr_t number) { return reinterpret_cast<const WorldModel*>(number); }

SliceLimits Limits(double step_s, int servers = 1, int threads = 1) {
  return {.step_s = step_s,
          .threads = threads,
          .servers = servers,
          .bytes = 4 << 20,
          .bytes_per_world = 1000,
          .bytes_per_step = 1000};
}

bool GoOn(int64_t) { return true; }

// How often each world was stepped, once all slices are taken; -1: not in order.
std::vector<int64_t> StepsTaken(WorldQueue* queue, int64_t worlds, const SliceLimits& limits) {
  std::vector<int64_t> taken(worlds);
  while (!queue->empty()) {
    const WorldSlice slice = queue->Acquire(limits);
    EXPECT_GT(slice.world_steps(), 0);
    for (int64_t world = slice.begin; world < slice.end; ++world) {
      taken[world] = taken[world] == slice.first_step ? taken[world] + slice.steps : -1;
    }
    queue->Continue(slice, GoOn);
  }
  return taken;
}

TEST(WorldQueueTest, EachStepOfEachWorldIsTakenOnce) {
  for (const double step_s : {0.0, 1e-6, 1e-4, 1e-2, 10.0}) {
    for (const int64_t every : {1, 7, 50}) {
      for (const int servers : {1, 3}) {
        WorldQueue queue(Models(37, Name(8)), 50, every);
        EXPECT_EQ(StepsTaken(&queue, 37, Limits(step_s, servers, 2)), std::vector<int64_t>(37, 50));
      }
    }
  }
}

TEST(WorldQueueTest, SlicesEndWhereAStepIsAnswered) {
  WorldQueue queue(Models(2, Name(8)), 100, 7);
  while (!queue.empty()) {
    const WorldSlice slice = queue.Acquire(Limits(0.05));
    EXPECT_EQ(slice.first_step % 7, 0);
    EXPECT_TRUE(slice.steps % 7 == 0 || slice.first_step + slice.steps == 100);
    queue.Continue(slice, GoOn);
  }
}

TEST(WorldQueueTest, ASliceHasWorldsOfOneModel) {
  Models models(5, Name(8));
  models.insert(models.end(), 3, Name(16));
  models.push_back(Name(8));
  WorldQueue queue(models, 2, 1);
  while (!queue.empty()) {
    const WorldSlice slice = queue.Acquire(Limits(1e-6));
    for (int64_t world = slice.begin; world < slice.end; ++world) {
      EXPECT_EQ(models[world], models[slice.begin]);
    }
  }
}

TEST(WorldQueueTest, ShortStepsMakeOneSliceOfAllWorlds) {
  WorldQueue queue(Models(64, Name(8)), 1, 1);
  EXPECT_EQ(queue.Acquire(Limits(1e-5)).worlds(), 64);
}

TEST(WorldQueueTest, LongOnesAreDealtToServersTwice) {
  WorldQueue queue(Models(64, Name(8)), 20, 1);
  EXPECT_EQ(queue.Acquire(Limits(25e-6, /*servers=*/2)).worlds(), 16);
}

TEST(WorldQueueTest, ASliceIsNotPredictedToTakeLong) {
  WorldQueue queue(Models(64, Name(8)), 100, 1);
  const WorldSlice slice = queue.Acquire(Limits(1e-4));
  EXPECT_LE(1e-4 * static_cast<double>(slice.world_steps()), 0.05);
  EXPECT_EQ(slice.steps, 100);
}

TEST(WorldQueueTest, EveryThreadOfAServerHasAWorld) {
  WorldQueue queue(Models(64, Name(8)), 100, 1);
  EXPECT_EQ(queue.Acquire(Limits(1e-3, 1, /*threads=*/16)).worlds(), 16);
}

TEST(WorldQueueTest, ASliceIsBoundedInBytes) {
  WorldQueue queue(Models(64, Name(8)), 100'000, 1);
  SliceLimits limits = Limits(1e-9);
  limits.bytes = 1 << 20;
  const WorldSlice slice = queue.Acquire(limits);
  EXPECT_LE(1000 * (slice.worlds() + slice.world_steps()), limits.bytes);
  EXPECT_EQ(slice.worlds(), 1);
}

TEST(WorldQueueTest, AReturnedSliceComesNextWithItsLosses) {
  WorldQueue queue(Models(8, Name(8)), 100, 1);
  WorldSlice lost = queue.Acquire(Limits(1e-3));
  lost.lost_attempts = 1;
  lost.lost_at = 2;
  queue.Return(lost);
  const WorldSlice again = queue.Acquire(Limits(1e-3));
  EXPECT_EQ(again.begin, lost.begin);
  EXPECT_EQ(again.world_steps(), lost.world_steps());
  EXPECT_EQ(again.lost_attempts, 1);
  EXPECT_EQ(again.lost_at, 2);
}

TEST(WorldQueueTest, WorldsThatHaveEndedAreNotContinued) {
  WorldQueue queue(Models(6, Name(8)), 1000, 1);
  const WorldSlice slice = queue.Acquire(Limits(0.0));
  ASSERT_LT(slice.steps, 1000);
  std::vector<int64_t> taken(6, slice.steps);
  WorldQueue other(Models(6, Name(8)), 1000, 1);
  WorldSlice all = slice;
  all.end = 6;
  while (!other.empty()) other.Acquire(Limits(1e-9));
  other.Continue(all, [](int64_t world) { return world != 0 && world != 3; });
  while (!other.empty()) {
    const WorldSlice rest = other.Acquire(Limits(1e-9));
    EXPECT_EQ(rest.first_step, slice.steps);
    for (int64_t world = rest.begin; world < rest.end; ++world) taken[world] += rest.steps;
  }
  EXPECT_EQ(taken, (std::vector<int64_t>{slice.steps, 1000, 1000, slice.steps, 1000, 1000}));
}

}  // namespace
}  // namespace sap::client::world_queue
