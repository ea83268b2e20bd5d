#include "solver/cholesky/vertex_separator.h"

#include <metis.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>

// Of METIS 5.1, which is pinned: what a thread has allocated in METIS since the first is freed by
// the second. METIS itself recovers from errors in METIS_NodeND by these two and a long jump.
static_assert(METIS_VER_MAJOR == 5 && METIS_VER_MINOR == 1);
extern "C" int gk_malloc_init();
extern "C" void gk_malloc_cleanup(int show_statistics);

namespace sap {
namespace {

// METIS as it is built has 32-bit indices and weights.
static_assert(sizeof(idx_t) == sizeof(int));

// What METIS draws on a thread.
class RandomSequence {
 public:
  explicit RandomSequence(const StopToken& stop) : stop_(stop) {}

  // A sequence of high period with any nonzero start [Marsaglia 2003, Xorshift RNGs]. Does not
  // return where a stop was requested.
  int Next() {
    constexpr unsigned kDrawsPerPoll = 16;
    if (++draws_ % kDrawsPerPoll == 0 && stop_.Requested()) std::longjmp(way_out_, 1);
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int>((state_ >> 33) & RAND_MAX);
  }

  std::jmp_buf& way_out() { return way_out_; }

 private:
  const StopToken& stop_;
  uint64_t state_{0x9e3779b97f4a7c15};
  unsigned draws_{0};
  std::jmp_buf way_out_;
};

// Null outside METIS.
thread_local RandomSequence* metis_random = nullptr;

}  // namespace
}  // namespace sap

// METIS draws from the one rand() of the process, where any other thread that calls it (gRPC does)
// would change the separator and with it the bits of the solution. These two come before those of
// the C library: inside METIS they are the sequence above, everywhere else what they always were
// (in glibc rand and random are the same).
extern "C" int rand() noexcept {
  return sap::metis_random != nullptr ? sap::metis_random->Next() : static_cast<int>(random());
}

extern "C" void srand(unsigned seed) noexcept {
  if (sap::metis_random == nullptr) srandom(seed);
}

namespace sap {
namespace {

// METIS_OK, or not if it was stopped or failed. C is left in its middle by a long jump alone: it
// passes frames of METIS and of rand(), none of which has anything to destroy.
int CallMetis(idx_t num_vertices, idx_t* start, idx_t* neighbor, idx_t* weight, idx_t* options,
              idx_t* part, RandomSequence* random) {
  volatile int status = METIS_ERROR;
  gk_malloc_init();
  metis_random = random;
  if (setjmp(random->way_out()) == 0) {
    idx_t separator_weight = 0;
    status = METIS_ComputeVertexSeparator(&num_vertices, start, neighbor, weight, options,
                                          &separator_weight, part);
  }
  metis_random = nullptr;
  gk_malloc_cleanup(0);
  return status;
}

bool Separates(const BlockGraph& graph, const std::vector<Side>& side) {
  for (int i = 0; i < graph.num_blocks(); ++i) {
    if (side[i] != Side::kFirst) continue;
    for (const int j : graph.neighbors(i)) {
      if (side[j] == Side::kSecond) return false;
    }
  }
  return std::ranges::count(side, Side::kFirst) > 0 && std::ranges::count(side, Side::kSecond) > 0;
}

}  // namespace

std::optional<std::vector<Side>> VertexSeparator(const BlockGraph& graph, const StopToken& stop) {
  // METIS reads past its arrays on graphs without edges, and has no business with tiny ones.
  constexpr int kMinBlocks = 8;
  const int num_blocks = graph.num_blocks();
  if (num_blocks < kMinBlocks || graph.neighbor.empty()) return std::nullopt;

  // METIS takes its input by pointers to non-const, so it gets copies.
  std::vector<idx_t> start(graph.start);
  std::vector<idx_t> neighbor(graph.neighbor);
  std::vector<idx_t> weight(graph.weight);
  std::vector<idx_t> part(num_blocks, -1);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_NUMBERING] = 0;
  // The better of two, where METIS looks for several: from 2000 blocks on, where a third of a
  // dissection more is little beside the factorizations.
  options[METIS_OPTION_NSEPS] = 2;
  RandomSequence random(stop);
  const int status = CallMetis(num_blocks, start.data(), neighbor.data(), weight.data(), options,
                               part.data(), &random);
  if (status != METIS_OK) return std::nullopt;

  std::vector<Side> side(num_blocks);
  for (int i = 0; i < num_blocks; ++i) {
    if (part[i] < 0 || part[i] > 2) return std::nullopt;
    side[i] = static_cast<Side>(part[i]);
  }
  if (!Separates(graph, side)) return std::nullopt;
  return side;
}

}  // namespace sap
