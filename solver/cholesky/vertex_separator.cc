#include "solver/cholesky/vertex_separator.h"

#include <metis.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

// The names below are internal to METIS 5.1.
static_assert(METIS_VER_MAJOR == 5 && METIS_VER_MINOR == 1);
// METIS as it is built has 32-bit indices and weights.
static_assert(sizeof(idx_t) == sizeof(int));

namespace sap {
namespace {

// Random numbers for one call of METIS.
class RandomSequence {
 public:
  // A sequence of high period with any nonzero start [Marsaglia 2003, Xorshift RNGs].
  uint32_t Next() {
    ++num_draws_;
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 33);  // METIS takes them for int, so below 2^31
  }

  int64_t num_draws() const { return num_draws_; }

 private:
  uint64_t state_{0x9e3779b97f4a7c15};
  int64_t num_draws_{0};
};

// Null while the thread is not within METIS.
thread_local RandomSequence* metis_random = nullptr;

}  // namespace
}  // namespace sap

// METIS draws from gk_randint32 and seeds by gk_randinit. It defines and exports both, on top of
// rand() and srand() of the process: any other thread that draws there would change the separator
// and with it the bits of the solution, and the seed would change what others draw. METIS calls
// both by dynamic linking, so that these definitions take the place of its own: in an executable,
// which is searched before its libraries, and in a shared library opened by dlopen, which is
// searched before the libraries it depends on. Calls of METIS by others get what METIS itself would
// give them (in glibc rand and random are the same).
extern "C" {

[[gnu::visibility("default")]] uint32_t gk_randint32() {
  return sap::metis_random != nullptr ? sap::metis_random->Next() : static_cast<uint32_t>(random());
}

[[gnu::visibility("default")]] void gk_randinit(uint64_t seed) {
  if (sap::metis_random == nullptr) srandom(static_cast<unsigned>(seed));
}

idx_t libmetis__irand();  // METIS's own draw, from gk_randint32

}  // extern "C"

namespace sap {
namespace {

// Calls METIS, which draws from `random` meanwhile.
template <typename Body>
auto WithRandomSequence(RandomSequence* random, Body&& body) {
  metis_random = random;
  const auto result = body();
  metis_random = nullptr;
  return result;
}

// False where METIS calls its own definitions: in a process that had loaded METIS before it opened
// the shared library that holds this, where that library does not export the definitions above, and
// with a METIS that was linked with -Bsymbolic.
bool MetisDrawsHere() {
  static const bool result = [] {
    RandomSequence random;
    WithRandomSequence(&random, libmetis__irand);
    return random.num_draws() > 0;
  }();
  return result;
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

std::optional<std::vector<Side>> VertexSeparator(const BlockGraph& graph) {
  // METIS reads past its arrays on graphs without edges, and tiny graphs are ordered without it.
  constexpr int kMinBlocks = 8;
  idx_t num_blocks = graph.num_blocks();
  if (num_blocks < kMinBlocks || graph.neighbor.empty() || !MetisDrawsHere()) return std::nullopt;

  // METIS takes its input by pointers to non-const, so it gets copies.
  std::vector<idx_t> start(graph.start);
  std::vector<idx_t> neighbor(graph.neighbor);
  std::vector<idx_t> weight(graph.weight);
  std::vector<idx_t> part(num_blocks, -1);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_NUMBERING] = 0;
  // METIS looks for several separators from 2000 blocks on and keeps the best. Two take a third
  // longer than one, which is little beside the factorizations.
  options[METIS_OPTION_NSEPS] = 2;
  idx_t separator_weight = 0;
  RandomSequence random;
  const int status = WithRandomSequence(&random, [&] {
    return METIS_ComputeVertexSeparator(&num_blocks, start.data(), neighbor.data(), weight.data(),
                                        options, &separator_weight, part.data());
  });
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
