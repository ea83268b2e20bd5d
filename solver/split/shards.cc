#include "solver/split/shards.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "solver/split/place.h"

namespace sap {
namespace {

// Selects rows `entries` of an array of `count` rows of `per_entry` values, which begin with row
// number `first`. An array of another length is absent, or one that the solver does not read.
template <typename Value>
void PickEntries(std::span<const Value> values, size_t count, int per_entry,
                 std::span<const int> entries, int first, std::vector<Value>* picked) {
  picked->clear();
  if (values.size() != count * per_entry) return;
  ForRuns(entries, [&](int begin, int entries_of_run) {
    const auto from = values.begin() + static_cast<int64_t>(begin - first) * per_entry;
    picked->insert(picked->end(), from, from + static_cast<int64_t>(entries_of_run) * per_entry);
  });
}

// Selects `entries` of an array in which entry i is at [starts[i], starts[i + 1]).
template <typename Value, typename Start>
void PickRanges(std::span<const Value> values, const std::vector<Start>& starts,
                std::span<const int> entries, int first, std::vector<Value>* picked) {
  picked->clear();
  if (values.empty()) return;
  ForRuns(entries, [&](int begin, int entries_of_run) {
    picked->insert(picked->end(), values.begin() + starts[begin - first],
                   values.begin() + starts[begin - first + entries_of_run]);
  });
}

// The entries of one group that are in a shard, and the contacts with angular axes among them.
struct Entries {
  std::span<const int> picked;
  int first{0};     // number of the first entry of the group
  size_t count{0};  // entries of the group in the whole problem
  std::span<const int> angular{};
  int first_angular{0};
  size_t angular_count{0};
};

// Picks the arrays of a group, but not those of the groups within it.
template <typename View, typename Group>
void PickGroup(const ProblemLayout& layout, const Entries& entries, const View& whole,
               Group* shard) {
  const auto ranges = [&](const auto& values, const auto& starts, auto* picked) {
    PickRanges(values, starts, entries.picked, entries.first, picked);
  };
  const auto pick = [&](const auto& field, auto& picked, const auto& values) {
    switch (field.per) {
      case Per::kVelocity:
        return ranges(values, layout.velocity_start, &picked);
      case Per::kMatrix:
        return ranges(values, layout.matrix_start, &picked);
      case Per::kJacobian:
        return ranges(values, layout.jacobian_start, &picked);
      case Per::kTerm:
        return ranges(values, layout.row_start, &picked);
      case Per::kContactPart:
        return ranges(values, layout.contact_start, &picked);
      case Per::kAngularJacobian:
        return PickRanges(values, layout.angular_start, entries.angular, entries.first_angular,
                          &picked);
      case Per::kAngularContact:
        return PickEntries(values, entries.angular_count, field.columns, entries.angular,
                           entries.first_angular, &picked);
      case Per::kCoupling:
      case Per::kCouplingBlock:
        return picked.clear();  // ExtractCouplings has them
      case Per::kEntry:
        return PickEntries(values, entries.count, field.columns, entries.picked, entries.first,
                           &picked);
    }
  };
  Group::ForEach(pick, *shard, whole);
}

// The numbers below `end`, and the others.
struct Halves {
  std::span<const int> low, high;
};

Halves SplitAt(std::span<const int> numbers, int end) {
  const auto low = static_cast<size_t>(std::ranges::lower_bound(numbers, end) - numbers.begin());
  return {numbers.first(low), numbers.subspan(low)};
}

template <typename View, typename Contacts>
void PickContacts(const ProblemLayout& layout, const Entries& entries, const View& whole,
                  Contacts* shard) {
  PickGroup(layout, entries, whole, shard);
  PickGroup(layout, entries, whole.law, &shard->law);
  PickGroup(layout, entries, whole.law.hunt_crossley, &shard->law.hunt_crossley);
}

}  // namespace

Shards::Shards(const ContactProblemView& problem, const ProblemLayout& layout,
               std::span<const int> island_of_tree, const std::vector<std::vector<int>>& dealt) {
  std::vector<int> shard_of_island(island_of_tree.size());  // at most one island per tree
  size_t islands = 0;
  for (size_t shard = 0; shard < dealt.size(); ++shard) {
    islands += dealt[shard].size();
    for (const int island : dealt[shard]) shard_of_island[island] = static_cast<int>(shard);
  }
  Build(problem, layout, island_of_tree, std::span(shard_of_island).first(islands),
        static_cast<int>(dealt.size()));
}

void Shards::Build(const ContactProblemView& problem, const ProblemLayout& layout,
                   std::span<const int> island_of_tree, std::span<const int> shard_of_island,
                   int count, int free_trees) {
  problem_ = problem;
  layout_ = &layout;
  island_of_tree_ = island_of_tree;
  DealTrees(shard_of_island, count, free_trees);
  List(
      static_cast<int>(shard_of_island.size()), count,
      [&](int island) { return shard_of_island[island]; }, &islands_);
  List(
      layout.num_trees(), count, [&](int tree) { return shard_of_tree_[tree]; }, &trees_);
  place_of_tree_.resize(layout.num_trees());
  for (int shard = 0; shard < count; ++shard) {
    int place = 0;
    for (const int tree : trees_.of(shard)) place_of_tree_[tree] = place++;
  }
  const auto of_contact = [&](int contact) {
    return shard_of_tree_[layout.contact_trees[layout.contact_start[contact]]];
  };
  List(layout.num_contacts(), count, of_contact, &contacts_);
  ListAngular(count);
  List(
      layout.num_rows(), count,
      [&](int row) { return shard_of_tree_[layout.row_entries[layout.row_start[row]].tree]; },
      &rows_);
  List(
      static_cast<int>(layout.coupled.size()), count,
      [&](int pair) { return shard_of_tree_[layout.coupled[pair].a]; }, &coupled_);
}

// Trees without an island follow each other, as many in each shard, or all in one.
void Shards::DealTrees(std::span<const int> shard_of_island, int count, int free_trees) {
  const auto free = static_cast<int64_t>(std::ranges::count(island_of_tree_, -1));
  shard_of_tree_.resize(island_of_tree_.size());
  int64_t next = 0;
  for (size_t tree = 0; tree < island_of_tree_.size(); ++tree) {
    const int island = island_of_tree_[tree];
    if (island >= 0) {
      shard_of_tree_[tree] = shard_of_island[island];
    } else {
      shard_of_tree_[tree] =
          free_trees != kSpread ? free_trees : static_cast<int>(next++ * count / free);
    }
  }
}

template <typename ShardOf>
void Shards::List(int size, int shards, const ShardOf& shard_of, Lists* lists) {
  std::vector<int>& start = lists->start;
  start.assign(shards + 1, 0);
  for (int number = 0; number < size; ++number) ++start[shard_of(number)];
  std::exclusive_scan(start.begin(), start.end(), start.begin(), 0);
  lists->numbers.resize(size);
  for (int number = 0; number < size; ++number) lists->numbers[start[shard_of(number)]++] = number;
  // Each start has moved to its end, which is the next start.
  std::shift_right(start.begin(), start.end(), 1);
  start[0] = 0;
}

// Contacts with angular axes are listed as the contacts are.
void Shards::ListAngular(int count) {
  angular_.numbers.clear();
  angular_.start.assign(1, 0);
  for (int shard = 0; shard < count; ++shard) {
    if (layout_->num_angular > 0) {
      for (const int contact : contacts_.of(shard)) {
        const int number = layout_->angular_number[contact];
        if (number >= 0) angular_.numbers.push_back(number);
      }
    }
    angular_.start.push_back(static_cast<int>(angular_.numbers.size()));
  }
}

Shard Shards::shard(int i) const {
  return {islands_.of(i), trees_.of(i), contacts_.of(i),
          angular_.of(i), rows_.of(i),  coupled_.of(i)};
}

OwnedContactProblem Shards::Extract(int number) const {
  OwnedContactProblem extracted;
  Extract(number, &extracted);
  return extracted;
}

void Shards::Extract(int number, OwnedContactProblem* extracted) const {
  const Shard part = shard(number);
  const auto [trees, bodies] = SplitAt(part.trees, layout_->articulated_trees);
  extracted->time_step = problem_.time_step;
  extracted->regularization = problem_.regularization;
  PickGroup(*layout_, {.picked = trees, .count = problem_.trees.dofs.size()}, problem_.trees,
            &extracted->trees);
  ExtractCouplings(number, &extracted->trees);
  PickGroup(
      *layout_,
      {.picked = bodies, .first = layout_->articulated_trees, .count = problem_.bodies.mass.size()},
      problem_.bodies, &extracted->bodies);
  ExtractContacts(part, extracted);
  ExtractRows(part, &extracted->rows);
}

void Shards::ExtractCouplings(int number, OwnedContactProblem::Trees* extracted) const {
  const std::span<const double> blocks = problem_.trees.coupling_block;
  for (const int pair : coupled_.of(number)) {
    const auto& [a, b, start] = layout_->coupled[pair];
    extracted->coupled_a.push_back(PlaceOf(a));
    extracted->coupled_b.push_back(PlaceOf(b));
    const int64_t size = static_cast<int64_t>(layout_->dofs[a]) * layout_->dofs[b];
    extracted->coupling_block.insert(extracted->coupling_block.end(), blocks.begin() + start,
                                     blocks.begin() + start + size);
  }
}

void Shards::ExtractContacts(const Shard& part, OwnedContactProblem* extracted) const {
  const int first = layout_->jacobian_contacts;
  const int first_angular = layout_->jacobian_angular;
  const auto [given, between] = SplitAt(part.contacts, first);
  const auto [given_angular, between_angular] = SplitAt(part.angular, first_angular);
  OwnedContactProblem::Contacts& contacts = extracted->contacts;
  PickContacts(*layout_,
               {.picked = given,
                .count = static_cast<size_t>(first),
                .angular = given_angular,
                .angular_count = static_cast<size_t>(first_angular)},
               problem_.contacts, &contacts);
  for (auto* trees : {&contacts.tree_a, &contacts.tree_b, &contacts.part_tree}) {
    for (int32_t& tree : *trees) tree = PlaceOf(tree);
  }
  OwnedContactProblem::BodyContacts& body_contacts = extracted->body_contacts;
  PickContacts(*layout_,
               {.picked = between,
                .first = first,
                .count = static_cast<size_t>(layout_->num_contacts() - first),
                .angular = between_angular,
                .first_angular = first_angular,
                .angular_count = static_cast<size_t>(layout_->num_angular - first_angular)},
               problem_.body_contacts, &body_contacts);
  const int trees = layout_->articulated_trees;
  const auto in_shard = static_cast<int>(SplitAt(part.trees, trees).low.size());
  for (auto* bodies : {&body_contacts.body_a, &body_contacts.body_b}) {
    for (int32_t& body : *bodies) {
      if (body >= 0) body = PlaceOf(trees + body) - in_shard;
    }
  }
}

void Shards::ExtractRows(const Shard& part, OwnedContactProblem::Rows* extracted) const {
  PickGroup(*layout_, {.picked = part.rows, .count = problem_.rows.entries.size()}, problem_.rows,
            extracted);
  if (part.rows.empty()) return;
  std::vector<uint32_t> start{0};  // of the velocities of each tree in this shard
  for (const int tree : part.trees) start.push_back(start.back() + layout_->dofs[tree]);
  auto index = extracted->velocity_index.begin();
  for (const int row : part.rows) {
    for (int64_t e = layout_->row_start[row]; e < layout_->row_start[row + 1]; ++e) {
      const RowEntry& entry = layout_->row_entries[e];
      *index++ = start[PlaceOf(entry.tree)] + entry.dof;
    }
  }
}

void Shards::ExtractVelocities(int number, std::span<const double> scene,
                               std::vector<double>* extracted) const {
  PickRanges(scene, layout_->velocity_start, trees_.of(number), 0, extracted);
}

void Shards::Prepare(ContactSolution* scene) const {
  const auto contacts = static_cast<size_t>(layout_->num_contacts());
  scene->velocity.resize(layout_->velocity_start.back());
  scene->impulse.resize(3 * contacts);
  scene->contact_velocity.resize(3 * contacts);
  scene->delassus_estimate.resize(contacts);
  scene->angular_impulse.resize(3 * static_cast<size_t>(layout_->num_angular));
  scene->row_impulse.resize(layout_->num_rows());
  scene->row_velocity.resize(layout_->num_rows());
  scene->cost = 0;
  scene->shared_islands = 0;
  scene->shared_constraints = 0;
  scene->island_of_tree.assign(island_of_tree_.begin(), island_of_tree_.end());
  scene->islands.resize(islands_.numbers.size());
}

void Shards::Place(int number, const ContactSolution& solution, ContactSolution* scene) const {
  const Shard part = shard(number);
  PlaceRanges<double>(solution.velocity, part.trees, layout_->velocity_start, &scene->velocity);
  const auto place = [&](std::vector<double> ContactSolution::*array, std::span<const int> places,
                         int per_place) {
    PlaceBlocks<double>(solution.*array, places, per_place, &(scene->*array));
  };
  place(&ContactSolution::impulse, part.contacts, 3);
  place(&ContactSolution::contact_velocity, part.contacts, 3);
  place(&ContactSolution::delassus_estimate, part.contacts, 1);
  place(&ContactSolution::angular_impulse, part.angular, 3);
  place(&ContactSolution::row_impulse, part.rows, 1);
  place(&ContactSolution::row_velocity, part.rows, 1);
  PlaceBlocks<IslandReport>(solution.islands, part.islands, 1, &scene->islands);
}

void Shards::Pick(int number, const ContactSolution& scene, ContactSolution* solution) const {
  const Shard part = shard(number);
  ExtractVelocities(number, scene.velocity, &solution->velocity);
  const auto pick = [&](std::vector<double> ContactSolution::*array, size_t count, int per_place,
                        std::span<const int> places) {
    PickEntries<double>(scene.*array, count, per_place, places, 0, &(solution->*array));
  };
  const auto contacts = static_cast<size_t>(layout_->num_contacts());
  const auto rows = static_cast<size_t>(layout_->num_rows());
  pick(&ContactSolution::impulse, contacts, 3, part.contacts);
  pick(&ContactSolution::contact_velocity, contacts, 3, part.contacts);
  pick(&ContactSolution::delassus_estimate, contacts, 1, part.contacts);
  pick(&ContactSolution::angular_impulse, layout_->num_angular, 3, part.angular);
  pick(&ContactSolution::row_impulse, rows, 1, part.rows);
  pick(&ContactSolution::row_velocity, rows, 1, part.rows);
  PickEntries<IslandReport>(scene.islands, scene.islands.size(), 1, part.islands, 0,
                            &solution->islands);
}

}  // namespace sap
