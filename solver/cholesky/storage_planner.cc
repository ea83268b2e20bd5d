#include "solver/cholesky/storage_planner.h"

#include <algorithm>

namespace sap {

int64_t StoragePlanner::Allocate(int64_t size) {
  if (size == 0) return 0;
  auto best = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const int64_t length = hole->end - hole->begin;
    if (length >= size && (best == holes_.end() || length < best->end - best->begin)) best = hole;
  }
  if (best == holes_.end()) {
    // The last hole grows when it reaches the end.
    int64_t begin = peak_;
    if (!holes_.empty() && holes_.back().end == peak_) {
      begin = holes_.back().begin;
      holes_.pop_back();
    }
    peak_ = begin + size;
    return begin;
  }
  const int64_t offset = best->begin;
  best->begin += size;
  if (best->begin == best->end) holes_.erase(best);
  return offset;
}

void StoragePlanner::Free(int64_t offset, int64_t size) {
  if (size == 0) return;
  const auto next = std::lower_bound(holes_.begin(), holes_.end(), offset,
                                     [](const Hole& hole, int64_t at) { return hole.begin < at; });
  const bool joins_next = next != holes_.end() && next->begin == offset + size;
  const bool joins_previous = next != holes_.begin() && std::prev(next)->end == offset;
  if (joins_previous && joins_next) {
    std::prev(next)->end = next->end;
    holes_.erase(next);
  } else if (joins_previous) {
    std::prev(next)->end = offset + size;
  } else if (joins_next) {
    next->begin = offset;
  } else {
    holes_.insert(next, Hole{offset, offset + size});
  }
}

}  // namespace sap
