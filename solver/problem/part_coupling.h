// Ranges of a list, and the couplings of trees that one constraint makes.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

namespace sap {

// A range of rows, or of couplings.
struct IndexRange {
  int begin{0}, end{0};

  int size() const { return end - begin; }
  bool empty() const { return begin == end; }
};

// Two parts of one row, or of the contacts of one group, in trees low < high.
struct PartCoupling {
  int low, high;  // slots
  int unit;       // the row, or the group
  int part_low, part_high;
};

// Appends those of any two of the parts [begin, end) of a unit, whose slots slot_of(part) ascend.
template <typename SlotOf>
void AppendCouplings(int unit, int begin, int end, SlotOf&& slot_of,
                     std::vector<PartCoupling>* couplings) {
  for (int a = begin; a < end; ++a) {
    for (int b = a + 1; b < end; ++b) couplings->push_back({slot_of(a), slot_of(b), unit, a, b});
  }
}

// By pair of trees, then by unit.
inline void SortCouplings(std::vector<PartCoupling>* couplings) {
  const auto key = [](const PartCoupling& c) { return std::tuple(c.low, c.high, c.unit); };
  if (!std::ranges::is_sorted(*couplings, {}, key)) std::ranges::sort(*couplings, {}, key);
}

}  // namespace sap
