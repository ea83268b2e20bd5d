#include "solver/cholesky/plan_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace sap {
namespace {

// Chains of blocks of three rows: `length` tells the patterns apart.
class Chains {
 public:
  explicit Chains(PlanCache* cache) : cache_(cache) {}

  const PlanCache::Plan* Request(int length) {
    sizes_.assign(length, 3);
    a_.clear();
    b_.clear();
    for (int i = 0; i + 1 < length; ++i) {
      a_.push_back(i);
      b_.push_back(i + 1);
    }
    return cache_->Request({sizes_, a_, b_});
  }

  // A problem of these chains.
  void Plan(const std::vector<int>& lengths) {
    cache_->BeginProblem();
    for (const int length : lengths) Request(length);
    cache_->MakePlans(StopToken(), nullptr);
  }

 private:
  PlanCache* cache_;
  std::vector<int> sizes_, a_, b_;
};

TEST(PlanCacheTest, APatternSeenBeforeIsNotPlannedAgain) {
  const std::vector<int> sizes(12, 6);
  std::vector<int> a, b;
  for (int i = 0; i + 1 < 12; ++i) {
    a.push_back(i);
    b.push_back(i + 1);
  }
  PlanCache cache;
  cache.BeginProblem();
  const PlanCache::Plan* plan = cache.Request({sizes, a, b});
  EXPECT_FALSE(*plan);
  EXPECT_EQ(cache.Request({sizes, a, b}), plan);
  cache.MakePlans(StopToken(), nullptr);
  EXPECT_TRUE(*plan);
  cache.BeginProblem();
  EXPECT_EQ(cache.Request({sizes, a, b}), plan);
  cache.MakePlans(StopToken(), nullptr);
  EXPECT_EQ(cache.plans_made(), 1);
  b.back() = 0;
  cache.Request({sizes, a, b});
  cache.MakePlans(StopToken(), nullptr);
  EXPECT_EQ(cache.plans_made(), 2);
}

TEST(PlanCacheTest, ForgetsTheOldestPlanButNoneOfTheCurrentProblem) {
  PlanCache cache;
  TaskArena arena(2);
  std::vector<const PlanCache::Plan*> plans;
  cache.BeginProblem();
  const std::vector<int> none;
  const auto request = [&](int n) { return cache.Request({std::vector<int>(n, 3), none, none}); };
  for (int n = 1; n <= 200; ++n) plans.push_back(request(n));
  cache.MakePlans(StopToken(), &arena);
  for (int n = 1; n <= 200; ++n) {
    EXPECT_EQ(request(n), plans[n - 1]);
    ASSERT_TRUE(*plans[n - 1]);
    EXPECT_EQ((*plans[n - 1])->num_blocks(), n);
  }
}

TEST(PlanCacheTest, StoppedItMakesThePlansWhenTheyAreRequestedAgain) {
  PlanCache cache;
  const std::vector<int> sizes(500, 6);
  const std::vector<int> none;
  cache.BeginProblem();
  const PlanCache::Plan* plan = cache.Request({sizes, none, none});
  cache.MakePlans(StopToken().Expired(), nullptr);
  EXPECT_FALSE(*plan);
  EXPECT_EQ(cache.plans_made(), 0);
  cache.BeginProblem();
  plan = cache.Request({sizes, none, none});
  cache.MakePlans(StopToken(), nullptr);
  EXPECT_TRUE(*plan);
  EXPECT_EQ(cache.plans_made(), 1);
}

// However many islands there are, only what is new is planned: none of the plans that this problem
// is about to ask for makes room for it.
TEST(PlanCacheTest, OfManyPatternsOnlyTheChangedOnesArePlanned) {
  constexpr int kIslands = 134;
  constexpr int kChanged = 3;
  PlanCache cache;
  Chains chains(&cache);
  std::vector<int> lengths(kIslands);
  for (int i = 0; i < kIslands; ++i) lengths[i] = 10 + i;
  chains.Plan(lengths);
  EXPECT_EQ(cache.plans_made(), kIslands);
  for (int problem = 0; problem < 50; ++problem) {
    for (int k = 0; k < kChanged; ++k) lengths[(7 * problem + 41 * k) % kIslands] += kIslands;
    const int64_t before = cache.plans_made();
    chains.Plan(lengths);
    EXPECT_EQ(cache.plans_made() - before, kChanged) << problem;
  }
}

TEST(PlanCacheTest, ARequestComparesOnePatternHoweverManyThereAre) {
  constexpr int kIslands = 10'000;
  PlanCache cache;
  const auto request_all = [&] {
    cache.BeginProblem();
    for (int i = 1; i <= kIslands; ++i) {
      const std::vector<int> sizes{i, 3};
      cache.Request({sizes, {}, {}});
    }
  };
  request_all();
  EXPECT_EQ(cache.patterns_compared(), 0);
  request_all();
  EXPECT_EQ(cache.patterns_compared(), kIslands);
}

TEST(PlanCacheTest, KeepsWhatFitsAndForgetsWhatWasUnusedForLongest) {
  PlanCache unlimited(SIZE_MAX);
  Chains(&unlimited).Plan({100});
  const size_t one = unlimited.storage_bytes();
  PlanCache cache(12 * one);
  Chains chains(&cache);
  for (int length = 90; length <= 101; ++length) chains.Plan({length});
  EXPECT_EQ(cache.plans_made(), 12);
  chains.Plan({90});  // now the one that was used last
  EXPECT_EQ(cache.plans_made(), 12);
  chains.Plan({102});
  EXPECT_EQ(cache.plans_made(), 13);
  for (int kept = 92; kept <= 102; ++kept) chains.Plan({kept});
  chains.Plan({90});
  EXPECT_EQ(cache.plans_made(), 13);
  chains.Plan({91});
  EXPECT_EQ(cache.plans_made(), 14);
}

// A large pile that comes to rest alternates between a few patterns, each larger than the bound.
TEST(PlanCacheTest, KeepsAFewTimesWhatTheProblemNeedsBeyondTheBound) {
  PlanCache cache(0);
  Chains chains(&cache);
  for (int turn = 0; turn < 3; ++turn) {
    for (const int length : {100, 110, 120}) chains.Plan({length});
  }
  EXPECT_EQ(cache.plans_made(), 3);
  const size_t three = cache.storage_bytes();
  chains.Plan({1000});
  EXPECT_GT(cache.storage_bytes(), 2 * three);
  chains.Plan({50});  // needs little, so little of others is kept
  EXPECT_LT(cache.storage_bytes(), 2 * three);
  cache.DropUnused();
  EXPECT_LT(cache.storage_bytes(), three / 2);
  chains.Plan({50});
  EXPECT_EQ(cache.plans_made(), 5);
}

TEST(PlanCacheTest, MemoryReturnsAfterALargeProblem) {
  constexpr size_t kBytes = 100'000;
  PlanCache cache(kBytes);
  Chains chains(&cache);
  std::vector<int> many;
  for (int length = 10; length < 1000; ++length) many.push_back(length);
  chains.Plan(many);
  const size_t large = cache.storage_bytes();
  EXPECT_GT(large, 50 * kBytes);
  chains.Plan(many);  // its own plans are never dropped
  EXPECT_EQ(cache.plans_made(), static_cast<int64_t>(many.size()));
  EXPECT_EQ(cache.storage_bytes(), large);
  chains.Plan({5});
  EXPECT_LE(cache.storage_bytes(), kBytes);
}

// What was finished when a stop came is there at the next request.
TEST(PlanCacheTest, PlansFinishedBeforeAStopAreKept) {
  PlanCache cache;
  Chains chains(&cache);
  chains.Plan({50});
  cache.BeginProblem();
  const PlanCache::Plan* finished = chains.Request(50);
  const PlanCache::Plan* missing = chains.Request(500);
  cache.MakePlans(StopToken().Expired(), nullptr);
  EXPECT_TRUE(*finished);
  EXPECT_FALSE(*missing);
  cache.MakePlans(StopToken(), nullptr);
  EXPECT_TRUE(*missing);
  EXPECT_EQ(cache.plans_made(), 2);
}

// Another attempt in the same time is of no use, for this pattern.
TEST(PlanCacheTest, RemembersHowLongAPlanWasTriedInVain) {
  PlanCache cache;
  Chains chains(&cache);
  const auto attempt_before = [&](int length) {
    cache.BeginProblem();
    chains.Request(length);
    return cache.longest_attempt().count();
  };
  EXPECT_EQ(attempt_before(500), 0);
  cache.MakePlans(StopToken().Expired(), nullptr);
  EXPECT_EQ(attempt_before(400), 0);
  EXPECT_GT(attempt_before(500), 0);
  cache.MakePlans(StopToken(), nullptr);
  EXPECT_EQ(attempt_before(500), 0);
}

}  // namespace
}  // namespace sap
