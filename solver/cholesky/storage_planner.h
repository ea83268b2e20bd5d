// Offsets in one block of memory for pieces whose lifetimes are known beforehand.
//
// Best fit: a piece goes into the smallest hole it fits in, so that memory still in cache is used
// again. Nothing is allocated when the plan is carried out.
#pragma once

#include <cstdint>
#include <vector>

namespace sap {

class StoragePlanner {
 public:
  // Offset of a piece of `size` entries.
  int64_t Allocate(int64_t size);
  // Returns a piece allocated before.
  void Free(int64_t offset, int64_t size);

  // Entries needed by what has been planned so far.
  int64_t peak() const { return peak_; }

 private:
  struct Hole {
    int64_t begin;
    int64_t end;
  };
  std::vector<Hole> holes_;  // ascending, never adjacent
  int64_t peak_{0};
};

}  // namespace sap
