#include "solver/nested_dissection.h"

#include <metis.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace sap {
namespace {

// State of the random numbers METIS draws on this thread; 0 outside METIS.
thread_local uint64_t metis_random_state = 0;

// A sequence of high period with any nonzero start [Marsaglia 2003, Xorshift RNGs].
int NextRandom() {
  metis_random_state ^= metis_random_state << 13;
  metis_random_state ^= metis_random_state >> 7;
  metis_random_state ^= metis_random_state << 17;
  return static_cast<int>((metis_random_state >> 33) & RAND_MAX);
}

std::mutex& MetisLock() {
  static std::mutex lock;
  return lock;
}

// METIS as it is built has 32-bit indices and weights.
static_assert(sizeof(idx_t) == sizeof(int));

}  // namespace
}  // namespace sap

// METIS draws from the one rand() of the process, where any other thread that calls it (gRPC does)
// would change the ordering and with it the bits of the solution. These two come before those of
// the C library: inside METIS they are the sequence above, everywhere else what they always were
// (in glibc rand and random are the same).
extern "C" int rand() noexcept {
  return sap::metis_random_state != 0 ? sap::NextRandom() : static_cast<int>(random());
}

extern "C" void srand(unsigned seed) noexcept {
  if (sap::metis_random_state == 0) srandom(seed);
}

namespace sap {

std::optional<std::vector<int>> NestedDissectionOrder(const BlockGraph& graph) {
  // METIS reads past its arrays on graphs without edges, and has no business with tiny ones.
  constexpr int kMinBlocks = 8;
  const int num_blocks = graph.num_blocks();
  if (num_blocks < kMinBlocks || graph.neighbor.empty()) return std::nullopt;

  // METIS takes its input by pointers to non-const, so it gets copies.
  idx_t num_vertices = num_blocks;
  std::vector<idx_t> start(graph.start.begin(), graph.start.end());
  std::vector<idx_t> neighbor(graph.neighbor.begin(), graph.neighbor.end());
  std::vector<idx_t> weight(graph.weight.begin(), graph.weight.end());
  std::vector<idx_t> order(num_blocks, -1);
  std::vector<idx_t> position(num_blocks, -1);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_SEED] = 1;

  int status;
  {
    const std::lock_guard guard(MetisLock());
    metis_random_state = 0x9e3779b97f4a7c15;
    status = METIS_NodeND(&num_vertices, start.data(), neighbor.data(), weight.data(), options,
                          order.data(), position.data());
    metis_random_state = 0;
  }
  if (status != METIS_OK || !IsPermutation(order, num_blocks)) return std::nullopt;
  return order;
}

}  // namespace sap
