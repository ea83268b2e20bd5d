#include "solver/problem/constraint_graph.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace sap {

namespace {

std::tuple<int, int> TreesOf(const TreePair& pair) { return {pair.low, pair.high}; }

}  // namespace

void ConstraintGraph::Build(const ContactProblem& problem, bool split_islands) {
  if (split_islands) {
    islands_ = problem.islands();
  } else {
    islands_.Find(problem, /*split=*/false);
  }
  LayOutTrees(problem);
  for (int i = 0; i < kNumContactKinds; ++i) {
    const auto kind = static_cast<ConstraintKind>(i);
    contacts_[i].Build(problem, islands_, dofs_, kind, NumRows(kind));
  }
  for (int i = kNumContactKinds; i < kNumConstraintKinds; ++i) {
    rows_[i - kNumContactKinds].Build(problem, islands_, static_cast<ConstraintKind>(i));
  }
  ListCoupledSlots(problem);
  FindPairs();
  ListSides();
  FindIslandRanges();
}

void ConstraintGraph::LayOutTrees(const ContactProblem& problem) {
  const int slots = islands_.num_slots();
  dofs_.resize(slots);
  velocity_start_.assign(slots + 1, 0);
  matrix_start_.assign(slots + 1, 0);
  for (int slot = 0; slot < slots; ++slot) {
    const int n = problem.dofs()[islands_.tree_of_slot()[slot]];
    dofs_[slot] = n;
    velocity_start_[slot + 1] = velocity_start_[slot] + n;
    matrix_start_[slot + 1] = matrix_start_[slot] + static_cast<int64_t>(n) * n;
  }
}

std::span<const PartCoupling> ConstraintGraph::CouplingsOf(int kind) const {
  return kind < kNumContactKinds ? contacts_[kind].couplings()
                                 : rows_[kind - kNumContactKinds].couplings();
}

// By slots. Those of an island ascend with the trees, so the lower tree has the lower slot.
void ConstraintGraph::ListCoupledSlots(const ContactProblem& problem) {
  const std::span<const int> slot_of_tree = islands_.slot_of_tree();
  coupled_slots_.clear();
  for (const CoupledPair& pair : problem.coupled_trees().pairs()) {
    coupled_slots_.push_back(
        {slot_of_tree[pair.b], slot_of_tree[pair.a], static_cast<int>(coupled_slots_.size())});
  }
  std::ranges::sort(coupled_slots_, {},
                    [](const CoupledSlots& pair) { return std::tuple(pair.low, pair.high); });
}

// Pairs of all kinds and of A together, each once.
void ConstraintGraph::FindPairs() {
  pairs_.clear();
  int lists = 0;
  const auto add = [this](int low, int high) {
    if (!pairs_.empty() && pairs_.back().low == low && pairs_.back().high == high) return;
    pairs_.push_back({low, high, dofs_[low], dofs_[high], 0});
  };
  for (int kind = 0; kind < kNumConstraintKinds; ++kind) {
    lists += !CouplingsOf(kind).empty();
    for (const PartCoupling& c : CouplingsOf(kind)) add(c.low, c.high);
  }
  lists += !coupled_slots_.empty();
  for (const CoupledSlots& pair : coupled_slots_) add(pair.low, pair.high);
  if (lists > 1) {
    std::ranges::sort(pairs_, {}, TreesOf);
    const auto equal = [](const TreePair& a, const TreePair& b) {
      return TreesOf(a) == TreesOf(b);
    };
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), equal), pairs_.end());
  }
  block_size_ = 0;
  for (TreePair& pair : pairs_) {
    pair.block_start = block_size_;
    block_size_ += static_cast<int64_t>(pair.dofs_low) * pair.dofs_high;
  }
  for (int kind = 0; kind < kNumConstraintKinds; ++kind) MatchCouplings(kind);
  MatchCoupledPairs();
}

void ConstraintGraph::MatchCouplings(int kind) {
  std::vector<IndexRange>& match = coupling_range_[kind];
  match.clear();
  const std::span<const PartCoupling> couplings = CouplingsOf(kind);
  if (couplings.empty()) return;
  match.assign(pairs_.size(), IndexRange());
  size_t pair = 0;
  for (int i = 0; i < static_cast<int>(couplings.size()); ++i) {
    while (TreesOf(pairs_[pair]) != std::tuple(couplings[i].low, couplings[i].high)) ++pair;
    if (match[pair].empty()) match[pair].begin = i;
    match[pair].end = i + 1;
  }
}

void ConstraintGraph::MatchCoupledPairs() {
  coupled_pair_.clear();
  if (coupled_slots_.empty()) return;
  coupled_pair_.assign(pairs_.size(), -1);
  size_t pair = 0;
  for (const CoupledSlots& coupled : coupled_slots_) {
    while (TreesOf(pairs_[pair]) != std::tuple(coupled.low, coupled.high)) ++pair;
    coupled_pair_[pair] = coupled.index;
  }
}

void ConstraintGraph::ListSides() {
  side_start_.assign(num_slots() + 1, 0);
  for (const TreePair& pair : pairs_) {
    ++side_start_[pair.low + 1];
    ++side_start_[pair.high + 1];
  }
  std::partial_sum(side_start_.begin(), side_start_.end(), side_start_.begin());
  sides_.resize(side_start_.back());
  count_.assign(side_start_.begin(), side_start_.end());
  for (int i = 0; i < static_cast<int>(pairs_.size()); ++i) {
    sides_[count_[pairs_[i].low]++] = {i, false};
    sides_[count_[pairs_[i].high]++] = {i, true};
  }
}

void ConstraintGraph::FindIslandRanges() {
  const std::span<const int> first_slot = islands_.first_slot();
  island_ranges_.resize(islands_.count());
  int pair = 0;
  int64_t block = 0;
  const int num_pairs = static_cast<int>(pairs_.size());
  for (int i = 0; i < islands_.count(); ++i) {
    IslandRange& range = island_ranges_[i];
    range.slot_begin = first_slot[i];
    range.slot_end = first_slot[i + 1];
    range.velocity_begin = velocity_start_[range.slot_begin];
    range.velocity_end = velocity_start_[range.slot_end];
    range.matrix_begin = matrix_start_[range.slot_begin];
    range.matrix_end = matrix_start_[range.slot_end];
    range.pair_begin = pair;
    range.block_begin = block;
    range.coupled = false;
    for (; pair < num_pairs && pairs_[pair].low < range.slot_end; ++pair) {
      range.coupled |= coupled_pair(pair) >= 0;
      block += static_cast<int64_t>(pairs_[pair].dofs_low) * pairs_[pair].dofs_high;
    }
    range.pair_end = pair;
    range.block_end = block;
    CountConstraints(i);
    range.cubed_dofs = 0;
    for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
      range.cubed_dofs += static_cast<double>(dofs_[slot]) * dofs_[slot] * dofs_[slot];
    }
  }
}

void ConstraintGraph::CountConstraints(int island) {
  IslandRange& range = island_ranges_[island];
  range.num_contacts = 0;
  range.num_rows = 0;
  range.kinds = 0;
  for (int i = 0; i < kNumContactKinds; ++i) {
    const int count = contacts_[i].island(island).num_contacts();
    range.num_contacts += count;
    range.kinds |= static_cast<unsigned>(count > 0) << i;
  }
  for (int i = 0; i < kNumConstraintKinds - kNumContactKinds; ++i) {
    const int count = rows_[i].island(island).size();
    range.num_rows += count;
    range.kinds |= static_cast<unsigned>(count > 0) << (kNumContactKinds + i);
  }
}

}  // namespace sap
