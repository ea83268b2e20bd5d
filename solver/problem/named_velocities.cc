#include "solver/problem/named_velocities.h"

#include <algorithm>

namespace sap {
namespace {

bool HasVelocity(const ContactSolution& solution, int tree) {
  const int island = solution.island_of_tree[tree];
  return island < 0 || solution.islands[island].status != SolveStatus::kNumericalFailure;
}

}  // namespace

void NamedVelocities::Remember(const NamedTrees& trees, const ContactSolution& solution) {
  entries_.clear();
  velocities_.assign(solution.velocity.begin(), solution.velocity.end());
  for (int tree = 0; tree < static_cast<int>(trees.name.size()); ++tree) {
    if (trees.name[tree] < 0 || !HasVelocity(solution, tree)) continue;
    entries_.push_back({trees.name[tree], trees.velocity_start[tree], trees.dofs[tree]});
  }
  // Most clients assign names in ascending order, so the sort is rarely needed.
  if (!std::ranges::is_sorted(entries_, {}, &Entry::name)) {
    std::ranges::sort(entries_, {}, &Entry::name);
  }
}

bool NamedVelocities::FillGuess(const ContactProblemView& view, const NamedTrees& trees,
                                std::span<double> guess) const {
  const int num_trees = static_cast<int>(view.trees.dofs.size());
  const bool trees_given = !view.trees.guess_velocity.empty();
  const bool bodies_given = !view.bodies.guess_velocity.empty();
  bool any = false;
  for (int tree = 0; tree < static_cast<int>(trees.name.size()); ++tree) {
    if (tree < num_trees ? trees_given : bodies_given) continue;
    const int64_t name = trees.name[tree];
    const auto entry = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
    if (entry == entries_.end() || entry->name != name) continue;
    if (entry->dofs != trees.dofs[tree]) continue;
    std::copy_n(velocities_.begin() + entry->start, entry->dofs,
                guess.begin() + trees.velocity_start[tree]);
    any = true;
  }
  return any;
}

}  // namespace sap
