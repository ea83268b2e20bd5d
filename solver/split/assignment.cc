#include "solver/split/assignment.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sap {

std::vector<std::vector<int>> AssignLargestFirst(std::span<const double> times_s, int servers) {
  std::vector<int> order(times_s.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int island) { return times_s[island]; });
  const size_t num_shards = std::min(times_s.size(), static_cast<size_t>(servers));
  std::vector<std::vector<int>> dealt(num_shards);
  std::vector<double> load_s(num_shards, 0.0);
  for (const int island : order) {
    const auto least = std::ranges::min_element(load_s);
    *least += times_s[island];
    dealt[least - load_s.begin()].push_back(island);
  }
  std::erase_if(dealt, [](const std::vector<int>& islands) { return islands.empty(); });
  for (std::vector<int>& islands : dealt) std::ranges::sort(islands);
  return dealt;
}

}  // namespace sap
