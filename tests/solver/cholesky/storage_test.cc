// Memory of the factorization: planned offsets, and buffers that are kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "solver/cholesky/block_cholesky.h"
#include "solver/cholesky/nested_dissection.h"
#include "solver/cholesky/storage_planner.h"
#include "tests/solver/cholesky/block_systems.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/arena_threads.h"

namespace sap {
namespace {

template <typename Scalar>
int64_t AllocationsOfFactorAndSolve(const test::PatternData& data, const EliminationPlan& plan,
                                    BlockCholesky<Scalar>* cholesky, TaskArena* arena) {
  const test::BlockValues values = test::RandomValues(data, 2);
  std::vector<double> x(plan.num_rows(), 1.0);
  const int64_t before = test::AllocationCount();
  cholesky->Factor(plan, values.diagonal, values.off_diagonal, StopToken(), arena);
  cholesky->Solve(plan, x, x, StopToken(), arena);
  return test::AllocationCount() - before;
}

TEST(StorageTest, SecondFactorizationAllocatesNothing) {
  const test::PatternData large = test::Pile(400, 5.5, 1);
  const test::PatternData small = test::Chain(30);
  const EliminationPlan large_plan = EliminationPlan::Make(large.pattern());
  const EliminationPlan small_plan = EliminationPlan::Make(small.pattern());
  TaskArena threads(3);
  test::StartThreads(&threads);
  for (TaskArena* arena : {static_cast<TaskArena*>(nullptr), &threads}) {
    BlockCholesky<double> cholesky;
    BlockCholesky<float> single;
    EXPECT_EQ(AllocationsOfFactorAndSolve(large, large_plan, &cholesky, arena), 1);
    EXPECT_EQ(AllocationsOfFactorAndSolve(large, large_plan, &single, arena), 1);
    for (int repetition = 0; repetition < 3; ++repetition) {
      EXPECT_EQ(AllocationsOfFactorAndSolve(large, large_plan, &cholesky, arena), 0);
      EXPECT_EQ(AllocationsOfFactorAndSolve(small, small_plan, &cholesky, arena), 0);
      EXPECT_EQ(AllocationsOfFactorAndSolve(large, large_plan, &single, arena), 0);
    }
  }
}

// What a plan says beforehand is all that is allocated.
TEST(StorageTest, IsAsLargeAsThePlanSays) {
  const test::PatternData data = test::Pile(300, 5.5, 1);
  const EliminationPlan plan = EliminationPlan::Make(data.pattern());
  TaskArena threads(2);
  test::StartThreads(&threads);
  for (TaskArena* arena : {static_cast<TaskArena*>(nullptr), &threads}) {
    BlockCholesky<double> reserved;
    reserved.Reserve(BlockCholesky<double>::StorageBytes(plan, arena));
    EXPECT_EQ(AllocationsOfFactorAndSolve(data, plan, &reserved, arena), 0);
    BlockCholesky<float> single;
    AllocationsOfFactorAndSolve(data, plan, &single, arena);
    EXPECT_EQ(single.storage_bytes(), BlockCholesky<float>::StorageBytes(plan, arena));
  }
}

int64_t BytesPerBlockOfDissection(const test::PatternData& data) {
  const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
  const int64_t before = test::AllocatedBytes();
  NestedDissectionOrder(graph, StopToken(), nullptr);
  return (test::AllocatedBytes() - before) / graph.num_blocks();
}

// Twelve times as many blocks take at most about four levels of pieces more.
TEST(StorageTest, BytesPerBlockOfADissectionGrowWithItsLevelsOnly) {
  const int64_t small = BytesPerBlockOfDissection(test::Grid(50, 50));
  const int64_t large = BytesPerBlockOfDissection(test::Grid(173, 173));
  EXPECT_LT(large, 2 * small) << small << " bytes per block of the small one";
}

// Pieces alive at the same time never overlap, in 10,000 random steps.
TEST(StorageTest, PlannedPiecesDoNotOverlap) {
  std::mt19937 random(1);
  StoragePlanner planner;
  struct Piece {
    int64_t offset;
    int64_t size;
  };
  std::vector<Piece> alive;
  std::vector<int> owner;
  int64_t live_size = 0;
  int64_t largest_live_size = 0;
  for (int step = 0; step < 10000; ++step) {
    if (alive.size() < 40 && random() % 2 == 0) {
      const int64_t size = random() % 50;
      const Piece piece{planner.Allocate(size), size};
      owner.resize(planner.peak(), -1);
      for (int64_t k = piece.offset; k < piece.offset + size; ++k) {
        ASSERT_EQ(owner[k], -1);
        owner[k] = step;
      }
      live_size += size;
      alive.push_back(piece);
    } else if (!alive.empty()) {
      const size_t i = random() % alive.size();
      const Piece piece = alive[i];
      planner.Free(piece.offset, piece.size);
      for (int64_t k = piece.offset; k < piece.offset + piece.size; ++k) owner[k] = -1;
      live_size -= piece.size;
      alive.erase(alive.begin() + static_cast<ptrdiff_t>(i));
    }
    largest_live_size = std::max(largest_live_size, live_size);
  }
  EXPECT_LE(planner.peak(), 2 * largest_live_size);
}

TEST(StorageTest, FreedPiecesAreUsedAgain) {
  StoragePlanner planner;
  const int64_t a = planner.Allocate(100);
  const int64_t b = planner.Allocate(10);
  const int64_t c = planner.Allocate(50);
  planner.Free(a, 100);
  planner.Free(b, 10);
  EXPECT_EQ(planner.Allocate(110), a);  // the two holes are one
  planner.Free(c, 50);
  EXPECT_EQ(planner.Allocate(60), c);  // the last hole grows
  EXPECT_EQ(planner.peak(), 170);
}

}  // namespace
}  // namespace sap
