#include "solver/run/sharded_problem.h"

#include <cstdint>

namespace sap {
namespace {

// No fewer pairs of trees than these constraints join, by the number of parts of each, which may be
// any number.
double MostPairs(std::span<const uint32_t> parts) {
  double pairs = 0;
  for (const double n : parts) pairs += n * (n - 1) / 2;
  return pairs;
}

}  // namespace

bool IsWithin(const ProblemLimits& limits, const ContactProblemView& view) {
  const auto fits = [](size_t count, int64_t limit) {
    return static_cast<int64_t>(count) <= limit;
  };
  return fits(view.trees.dofs.size() + view.bodies.mass.size(), limits.max_trees) &&
         fits(CountContacts(view.contacts) + view.body_contacts.body_a.size(),
              limits.max_contacts) &&
         fits(view.trees.coupled_a.size(), limits.max_row_pairs) &&
         fits(view.rows.entries.size(), limits.max_rows) &&
         fits(view.rows.velocity_index.size(), limits.max_row_entries) &&
         MostPairs(view.rows.entries) <= limits.max_row_pairs &&
         MostPairs(view.contacts.parts) <= limits.max_row_pairs;
}

bool ShardedProblem::Read(const ContactProblemView& view, const ProblemLimits& limits,
                          int least_trees) {
  // Matrices and Jacobians take ten times the memory of bodies and their contacts, and more time to
  // be copied than a small scene gains.
  constexpr int kMoreTrees = 4;
  is_large_whole_ = false;
  const int64_t bodies = std::ssize(view.bodies.mass);
  if (bodies < least_trees &&
      std::ssize(view.trees.dofs) + bodies < int64_t{kMoreTrees} * least_trees) {
    return false;
  }
  view_ = view;
  limits_ = limits;
  if (!IsWithin(limits, view) || !layout_.Read(view)) return false;
  islands_.Find(layout_.joined(), /*split=*/true);
  if (!neighbours_.Deal(layout_, islands_, least_trees)) {
    is_large_whole_ = neighbours_.has_large();
    return false;
  }
  shards_.Build(view, layout_, islands_.island_of_tree(), neighbours_.shard_of_island(),
                neighbours_.count());
  return true;
}

}  // namespace sap
