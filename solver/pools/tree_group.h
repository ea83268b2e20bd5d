// Trees of one island that Gauss-Seidel steps together.
#pragma once

#include <span>

namespace sap {

struct TreeGroup {
  int number;
  std::span<const int> slots;          // ascending
  std::span<const int> group_of_slot;  // of all slots

  bool Contains(int slot) const { return group_of_slot[slot] == number; }
};

}  // namespace sap
