// Stable sorting of integers by a small key, in linear time.
#pragma once

#include <numeric>
#include <span>
#include <vector>

namespace sap {

// Sorts `items` by key(item) in [0, num_keys) into *sorted; *count is scratch.
template <typename Key>
void SortByKey(std::span<const int> items, int num_keys, Key&& key, std::vector<int>* count,
               std::vector<int>* sorted) {
  count->assign(num_keys + 1, 0);
  for (int item : items) ++(*count)[key(item) + 1];
  std::partial_sum(count->begin(), count->end(), count->begin());
  sorted->resize(items.size());
  for (int item : items) (*sorted)[(*count)[key(item)]++] = item;
}

}  // namespace sap
