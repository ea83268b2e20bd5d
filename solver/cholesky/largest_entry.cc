#include "solver/cholesky/largest_entry.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace sap {
namespace {

// Blocks and entries that are looked at by one thread. Others have written them.
constexpr Chunks kBlocks{64, 1000};
constexpr Chunks kValues{512, 500};

// Four maxima at a time: each comparison waits for the one before.
class Largest {
 public:
  void Add(int64_t i, double value) { largest_[i % 4] = std::max(largest_[i % 4], value); }
  double value() const { return *std::max_element(largest_, largest_ + 4); }

 private:
  double largest_[4] = {};
};

// The largest that `look` adds for the chunks of [0, count).
template <typename Look>
double LargestOf(TaskArena* arena, int count, const Chunks& cut, Look&& look) {
  std::atomic<double> largest{0};
  ForChunks(arena, 0, count, cut, [&](int begin, int end, int) {
    Largest of_chunk;
    look(begin, end, &of_chunk);
    double before = largest.load(std::memory_order_relaxed);
    while (before < of_chunk.value() &&
           !largest.compare_exchange_weak(before, of_chunk.value(), std::memory_order_relaxed)) {
    }
  });
  return largest.load(std::memory_order_relaxed);
}

}  // namespace

double LargestDiagonalEntry(const EliminationPlan& plan, std::span<const double> diagonal,
                            TaskArena* arena) {
  return LargestOf(arena, plan.num_blocks(), kBlocks, [&](int begin, int end, Largest* largest) {
    for (int i = begin; i < end; ++i) {
      const int64_t size = plan.block_row_start()[i + 1] - plan.block_row_start()[i];
      const double* block = diagonal.data() + plan.diagonal_start()[i];
      for (int64_t j = 0; j < size; ++j) largest->Add(j, block[j * (size + 1)]);
    }
  });
}

double LargestEntry(std::span<const double> values, TaskArena* arena) {
  const int count = static_cast<int>(values.size());
  return LargestOf(arena, count, kValues, [&](int begin, int end, Largest* largest) {
    for (int i = begin; i < end; ++i) largest->Add(i, std::abs(values[i]));
  });
}

}  // namespace sap
