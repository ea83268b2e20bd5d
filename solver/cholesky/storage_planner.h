// Assigns offsets in one block of memory to pieces whose lifetimes are known in advance.
//
// Best fit: a piece is put in the smallest hole it fits in, so that memory that is still in cache
// is reused. Only offsets are planned here; the caller allocates peak() entries once.
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

  // Size in entries of the block of memory needed so far.
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
