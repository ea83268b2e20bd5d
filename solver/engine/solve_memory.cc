#include "solver/engine/solve_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "solver/engine/derivatives_request.h"
#include "solver/newton/gmres.h"
#include "solver/run/sharded_problem.h"

namespace sap {
namespace {

// Bytes of each, fitted to what problems of one kind allocate (solve_memory_test).
struct BytesPer {
  double problem{0};
  double tree{0};
  double velocity{0};
  double matrix_entry{0};
  double contact{0};
  double general_contact{0};  // added for laws other than friction with one coefficient
  double jacobian_entry{0};
  double row{0};
  double row_entry{0};
  // For each two trees that a contact or row joins: blocks of the Hessian, a place in the graph.
  double pair{0};
  double pair_entry{0};
  // For an entry of a block of A between two trees: the block as it is read, factored and gathered.
  double coupled_entry{0};

  // Adds what a method takes.
  BytesPer& operator+=(const BytesPer& method) {
    velocity += method.velocity;
    contact += method.contact;
    general_contact += method.general_contact;
    row += method.row;
    return *this;
  }
};
constexpr BytesPer kSolve{.problem = 64 << 10,
                          .tree = 400,
                          .velocity = 98,
                          .matrix_entry = 40,
                          .contact = 800,
                          .general_contact = 1300,
                          .jacobian_entry = 14,
                          .row = 800,
                          .row_entry = 24,
                          .pair = 200,
                          .pair_entry = 16,
                          .coupled_entry = 48};
// The vectors of GMRES, and a law of the rounds in each cone.
constexpr BytesPer kCoulomb{
    .velocity = 8 * (kMaxGmresProducts + 5), .contact = 240, .general_contact = 240};
// States of the islands that are handed over, which may be all of them at once.
constexpr BytesPer kInteriorPoint{
    .velocity = 16, .contact = 720, .general_contact = 590, .row = 230};
// The part of a scene in shards that is in memory as a whole: indices, answer, and the checked
// problem that is read where a value is refused.
constexpr BytesPer kScene{.problem = 64 << 10,
                          .tree = 300,
                          .velocity = 48,
                          .matrix_entry = 16,
                          .contact = 240,
                          .general_contact = 300,
                          .jacobian_entry = 8,
                          .row = 200,
                          .row_entry = 24,
                          .pair = 8,
                          .coupled_entry = 16};

BytesPer BytesOfMethod(const SolverOptions& options) {
  BytesPer bytes = kSolve;
  if (options.coulomb) bytes += kCoulomb;
  if (MayHandOver(options)) bytes += kInteriorPoint;
  return bytes;
}

// Guesses of the impulses of a contact, and of a row.
constexpr double kContactGuess = 96;
constexpr double kRowGuess = 16;

constexpr int kBodyDofs = 6;
constexpr int kBodyMatrix = kBodyDofs * kBodyDofs;
constexpr int kBodyJacobian = 3 * 2 * kBodyDofs;

template <typename Array>
double Count(const Array& array) {
  return static_cast<double>(array.size());
}

// Trees, then bodies. An index out of range is a tree of 0 dofs.
class Trees {
 public:
  explicit Trees(const ContactProblemView& view)
      : dofs_(view.trees.dofs),
        bodies_(std::ssize(view.bodies.mass)),
        most_dofs_(std::sqrt(Count(view.trees.dynamics_matrix))) {}

  double dofs(int64_t tree) const {
    if (tree < 0 || tree >= std::ssize(dofs_) + bodies_) return 0;
    if (tree >= std::ssize(dofs_)) return kBodyDofs;
    return std::min<double>(dofs_[tree], most_dofs_);
  }

  // Returns the tree of a velocity. The search begins at the tree found last, since velocities come
  // in order.
  int64_t TreeOf(int64_t velocity) {
    if (starts_.empty()) {
      starts_.reserve(dofs_.size() + 1);
      starts_.push_back(0);
      for (const uint32_t n : dofs_) starts_.push_back(starts_.back() + n);
    }
    if (velocity >= starts_.back())
      return std::ssize(dofs_) + (velocity - starts_.back()) / kBodyDofs;
    if (velocity < starts_[last_] || velocity >= starts_[last_ + 1]) {
      last_ = std::ranges::upper_bound(starts_, velocity) - starts_.begin() - 1;
    }
    return last_;
  }

 private:
  std::span<const uint32_t> dofs_;
  int64_t bodies_;
  double most_dofs_;             // that the matrix has entries for
  std::vector<int64_t> starts_;  // of velocities; made when it is needed
  int64_t last_{0};
};

double BytesOfTrees(const ContactProblemView& view, const BytesPer& per) {
  const double bodies = Count(view.bodies.mass);
  return per.tree * (Count(view.trees.dofs) + bodies) +
         per.velocity * (Count(view.trees.free_motion_velocity) + kBodyDofs * bodies) +
         per.matrix_entry * (Count(view.trees.dynamics_matrix) + kBodyMatrix * bodies) +
         per.pair * Count(view.trees.coupled_a) +
         per.coupled_entry * Count(view.trees.coupling_block);
}

bool HasAngular(const ContactProblemView::Law& law) {
  return !law.torsional_friction.empty() || !law.rolling_friction.empty();
}

// Bytes of a contact without its Jacobian.
double BytesOfLaw(const ContactProblemView::Law& law, const BytesPer& per) {
  const bool is_general =
      HasAngular(law) || !law.friction_2.empty() || !law.adhesion.empty() || !law.law.empty();
  return per.contact + (is_general ? per.general_contact : 0);
}

// The distinct trees of one constraint: their number, and the sums of n and n^2.
struct TreesOfConstraint {
  double count{0}, sum{0}, squares{0};

  void Add(double n) {
    count += 1;
    sum += n;
    squares += n * n;
  }
  // For each two of them.
  double bytes(const BytesPer& per) const {
    return (per.pair * count * (count - 1) + per.pair_entry * (sum * sum - squares)) / 2;
  }
};

double BytesOfContacts(const ContactProblemView& view, const Trees& trees, const BytesPer& per) {
  const auto given = static_cast<double>(CountContacts(view.contacts));
  const double between_bodies = Count(view.body_contacts.body_a);
  const double body_jacobians =
      kBodyJacobian * between_bodies * (HasAngular(view.body_contacts.law) ? 2 : 1);
  double bytes = given * BytesOfLaw(view.contacts.law, per) +
                 between_bodies * BytesOfLaw(view.body_contacts.law, per) +
                 per.jacobian_entry * (Count(view.contacts.jacobian) +
                                       Count(view.contacts.angular_jacobian) + body_jacobians) +
                 static_cast<double>(std::ranges::count_if(view.body_contacts.body_b,
                                                           [](int b) { return b >= 0; })) *
                     (per.pair + per.pair_entry * kBodyMatrix);
  // All contacts have guesses where some have.
  const bool has_guess =
      !view.contacts.law.guess_impulse.empty() || !view.body_contacts.law.guess_impulse.empty();
  if (has_guess) bytes += kContactGuess * (given + between_bodies);
  const size_t with_both = std::min(view.contacts.tree_a.size(), view.contacts.tree_b.size());
  for (size_t i = 0; i < with_both; ++i) {
    const double entries =
        trees.dofs(view.contacts.tree_a[i]) * trees.dofs(view.contacts.tree_b[i]);
    if (entries > 0) bytes += per.pair + per.pair_entry * entries;
  }
  const std::span<const int32_t> part_tree = view.contacts.part_tree;
  size_t part = 0;
  for (const uint32_t parts : view.contacts.parts) {
    TreesOfConstraint joined;
    for (const size_t end = std::min<size_t>(part_tree.size(), part + parts); part < end; ++part) {
      joined.Add(trees.dofs(part_tree[part]));
    }
    bytes += joined.bytes(per);
  }
  return bytes;
}

double BytesOfRows(const ContactProblemView& view, const BytesPer& per, Trees* trees) {
  const auto indices = view.rows.velocity_index;
  double bytes = per.row * Count(view.rows.entries) + per.row_entry * Count(indices) +
                 kRowGuess * Count(view.rows.guess_impulse);
  size_t first = 0;
  for (const uint32_t entries : view.rows.entries) {
    const size_t end = std::min<size_t>(indices.size(), first + entries);
    // Distinct trees follow each other since indices ascend.
    TreesOfConstraint joined;
    int64_t last = -1;
    for (size_t i = entries > 1 ? first : end; i < end; ++i) {
      const int64_t tree = trees->TreeOf(indices[i]);
      if (tree == last) continue;
      last = tree;
      joined.Add(trees->dofs(tree));
    }
    first = end;
    bytes += joined.bytes(per);
  }
  return bytes;
}

double BytesOfProblem(const ContactProblemView& view, const BytesPer& per) {
  Trees trees(view);
  return per.problem + BytesOfTrees(view, per) + BytesOfContacts(view, trees, per) +
         BytesOfRows(view, per, &trees);
}

int64_t InRange(double bytes) {
  // An invalid problem may ask for more than there are numbers for.
  constexpr double kMost = 1e15;
  return static_cast<int64_t>(std::min(kMost, bytes));
}

// Apart, since a workspace has room for the most of each among the shards that were solved in it.
struct ShardBytes {
  double trees{0}, contacts{0}, rows{0};

  void RaiseTo(const ShardBytes& other) {
    trees = std::max(trees, other.trees);
    contacts = std::max(contacts, other.contacts);
    rows = std::max(rows, other.rows);
  }
  double sum() const { return trees + contacts + rows; }
};

int64_t MostTreesOfContact(const ProblemLayout& layout) {
  int64_t most = 0;
  for (int contact = 0; contact < layout.num_contacts(); ++contact) {
    most = std::max(most, layout.contact_start[contact + 1] - layout.contact_start[contact]);
  }
  return most;
}

// Each contact counts as one of `most_trees` trees, all as large as the largest of the shard: to
// look at each takes half as long as to find the islands.
ShardBytes BytesOfShard(const ShardedProblem& scene, int number, int64_t most_trees,
                        const BytesPer& per) {
  const ProblemLayout& layout = scene.layout();
  const ContactProblemView& view = scene.view();
  const Shard shard = scene.shards().shard(number);
  ShardBytes bytes;
  bytes.trees = per.problem;
  double most_dofs = 0;
  for (const int tree : shard.trees) {
    const double n = layout.dofs[tree];
    bytes.trees += per.tree + per.velocity * n + per.matrix_entry * n * n;
    most_dofs = std::max(most_dofs, n);
  }
  for (const int pair : shard.coupled) {
    const auto& [a, b, start] = layout.coupled[pair];
    bytes.trees += per.pair + per.coupled_entry * layout.dofs[a] * layout.dofs[b];
  }
  TreesOfConstraint of_contact;
  for (int64_t i = 0; i < most_trees; ++i) of_contact.Add(most_dofs);
  const bool has_angular = HasAngular(view.contacts.law) || HasAngular(view.body_contacts.law);
  bytes.contacts =
      Count(shard.contacts) *
      (std::max(BytesOfLaw(view.contacts.law, per), BytesOfLaw(view.body_contacts.law, per)) +
       of_contact.bytes(per) + per.jacobian_entry * 3 * of_contact.sum * (has_angular ? 2 : 1));
  for (const int row : shard.rows) {
    TreesOfConstraint joined;
    int last = -1;
    for (int64_t e = layout.row_start[row]; e < layout.row_start[row + 1]; ++e) {
      const int tree = layout.row_entries[e].tree;
      if (tree != last) joined.Add(layout.dofs[tree]);
      last = tree;
    }
    const auto entries = static_cast<double>(layout.row_start[row + 1] - layout.row_start[row]);
    bytes.rows += per.row + per.row_entry * entries + joined.bytes(per);
  }
  return bytes;
}

}  // namespace

int64_t BytesOfSolve(const ContactProblemView& view, const SolverOptions& options) {
  return InRange(BytesOfProblem(view, BytesOfMethod(options)));
}

int64_t BytesOfSolve(const ShardedProblem& scene, const SolverOptions& options, int threads) {
  const BytesPer per = BytesOfMethod(options);
  const int64_t most_trees = MostTreesOfContact(scene.layout());
  ShardBytes large, small;
  for (int number = 0; number < scene.shards().count(); ++number) {
    const bool is_large = number == 0 && scene.neighbours().has_large();
    (is_large ? large : small).RaiseTo(BytesOfShard(scene, number, most_trees, per));
  }
  const double workspaces = large.sum() + threads * small.sum();
  return InRange(BytesOfProblem(scene.view(), kScene) +
                 std::min(workspaces, BytesOfProblem(scene.view(), per)));
}

EngineStatus CheckSolveMemory(int64_t bytes, const EngineLimits& limits) {
  const int64_t allowed = limits.max_solve_memory_mib << 20;
  if (bytes <= allowed) return {};
  return tl::unexpected(EngineError{EngineErrorCode::kResourceExhausted,
                                    "this problem takes up to " + Mebibytes(bytes) +
                                        ", without its factorization; a solve may take " +
                                        Mebibytes(allowed),
                                    "", "SOLVE_MEMORY"});
}

}  // namespace sap
