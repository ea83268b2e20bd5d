#include "solver/cholesky/metis_separator.h"

#include <metis.h>

#include <algorithm>

#include "solver/cholesky/metis_random.h"

// The names below are internal to METIS 5.1.
static_assert(METIS_VER_MAJOR == 5 && METIS_VER_MINOR == 1);
// METIS as it is built has 32-bit indices and weights.
static_assert(sizeof(idx_t) == sizeof(int));

extern "C" idx_t libmetis__irand();  // METIS's own draw

namespace sap {
namespace {

// False where METIS draws the random numbers of the process all the same.
bool MetisDrawsHere() {
  static const bool result = [] {
    ReplaceRandomNumbersOfMetis(reinterpret_cast<const void*>(&libmetis__irand));
    RandomSequence random;
    const MetisRandomScope scope(&random);
    libmetis__irand();
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
  // longer than one, which is little compared with the factorizations.
  options[METIS_OPTION_NSEPS] = 2;
  idx_t separator_weight = 0;
  RandomSequence random;
  const MetisRandomScope scope(&random);
  const int status =
      METIS_ComputeVertexSeparator(&num_blocks, start.data(), neighbor.data(), weight.data(),
                                   options, &separator_weight, part.data());
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
