// Memory of the factorization: planned offsets, and buffers that are kept.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "solver/block_cholesky.h"
#include "solver/storage_planner.h"
#include "tests/solver/block_systems.h"

namespace {
std::atomic<long> num_allocations{0};

void* Allocate(std::size_t size, std::size_t alignment) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace sap {
namespace {

template <typename Scalar>
long AllocationsOfFactorAndSolve(const testing::PatternData& data, const EliminationPlan& plan,
                                 BlockCholesky<Scalar>* cholesky, TaskArena* arena) {
  const testing::BlockValues values = testing::RandomValues(data, 2);
  std::vector<double> x(plan.num_rows(), 1.0);
  const long before = num_allocations.load();
  cholesky->Factor(plan, values.diagonal, values.off_diagonal, StopToken(), arena);
  cholesky->Solve(plan, x, x);
  return num_allocations.load() - before;
}

TEST(StorageTest, SecondFactorizationAllocatesNothing) {
  const testing::PatternData large = testing::Pile(400, 5.5, 1);
  const testing::PatternData small = testing::Chain(30);
  const EliminationPlan large_plan = EliminationPlan::Make(large.pattern());
  const EliminationPlan small_plan = EliminationPlan::Make(small.pattern());
  TaskArena arena(2);
  BlockCholesky<double> cholesky;
  BlockCholesky<float> single;
  EXPECT_GT(AllocationsOfFactorAndSolve(large, large_plan, &cholesky, nullptr), 0);
  EXPECT_GT(AllocationsOfFactorAndSolve(large, large_plan, &single, nullptr), 0);
  for (int repetition = 0; repetition < 3; ++repetition) {
    EXPECT_EQ(AllocationsOfFactorAndSolve(large, large_plan, &cholesky, nullptr), 0);
    EXPECT_EQ(AllocationsOfFactorAndSolve(small, small_plan, &cholesky, nullptr), 0);
    EXPECT_EQ(AllocationsOfFactorAndSolve(large, large_plan, &single, nullptr), 0);
  }
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
