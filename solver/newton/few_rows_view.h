// The view of an island of few rows and no contacts, without coupled trees.
//
// Kinds, number of chunks and whether other threads help, which loops over an IslandView ask for
// before their first element, are known at compile time here. In the small islands of a robot such
// questions take longer than the loops. Functions of a View are compiled for both types, from one
// source, so that the bits are the same.
#pragma once

#include <array>

#include "solver/newton/sap_data.h"

namespace sap {

class FewRowsView : public IslandView {
 public:
  static bool Fits(const IslandView& view) {
    constexpr unsigned kContactKinds = (1U << kNumContactKinds) - 1;
    const IslandRange& range = view.range();
    return view.arena == nullptr && (range.kinds & kContactKinds) == 0 && !range.coupled &&
           range.num_rows <= kRowsOfOneChunk && range.num_trees() <= kTreesOfOneChunk;
  }
  // Requires Fits(view).
  explicit FewRowsView(const IslandView& view) : IslandView(view), range_(view.range()) {
    ForEachPool([&](auto pool) {
      if constexpr (IsRow(pool)) pool_ranges_[pool - kNumContactKinds] = view.range(pool);
    });
  }

  static constexpr OneChunk arena{};
  static constexpr bool coupled() { return false; }
  const IslandRange& range() const { return range_; }
  template <int index>
  PoolRange range(PoolIndex<index>) const {
    return pool_ranges_[index - kNumContactKinds];
  }

 private:
  const IslandRange& range_;
  std::array<PoolRange, kNumConstraintKinds - kNumContactKinds> pool_ranges_;
};

template <typename Body>
inline void ForPoolsOf(const FewRowsView& view, Body&& body) {
  ForEachPool([&](auto pool) {
    if constexpr (IsRow(pool)) {
      if (view.range().has(pool.kind())) body(pool);
    }
  });
}

}  // namespace sap
