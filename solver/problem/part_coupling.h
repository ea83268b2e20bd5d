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

// Lists those of any two parts of each unit, by pair of trees, then by unit. Unit u has the parts
// parts_of(u), whose slots slot_of(part) ascend.
template <typename PartsOf, typename SlotOf>
void ListCouplings(int units, PartsOf&& parts_of, SlotOf&& slot_of,
                   std::vector<PartCoupling>* couplings) {
  couplings->clear();
  for (int unit = 0; unit < units; ++unit) {
    const IndexRange parts = parts_of(unit);
    for (int a = parts.begin; a < parts.end; ++a) {
      for (int b = a + 1; b < parts.end; ++b) {
        couplings->push_back({slot_of(a), slot_of(b), unit, a, b});
      }
    }
  }
  const auto key = [](const PartCoupling& c) { return std::tuple(c.low, c.high, c.unit); };
  if (!std::ranges::is_sorted(*couplings, {}, key)) std::ranges::sort(*couplings, {}, key);
}

}  // namespace sap
