#include "solver/engine/solve_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "solver/engine/derivatives_request.h"
#include "solver/newton/gmres.h"

namespace sap {
namespace {

// Bytes of each, fitted to what solves of problems of one kind allocate (solve_memory_test).
constexpr double kProblem = 64 << 10;
constexpr double kTree = 400;
constexpr double kVelocity = 98;
constexpr double kMatrixEntry = 40;
constexpr double kContact = 800;
// Added for laws other than friction with one coefficient.
constexpr double kGeneralContact = 1300;
constexpr double kJacobianEntry = 14;
constexpr double kRow = 800;
constexpr double kRowEntry = 24;
// For each two trees that a contact or row joins: blocks of the Hessian, a place in the graph.
constexpr double kPair = 200;
constexpr double kPairEntry = 16;
// For an entry of a block of A between two trees: the block as it is read, factored and gathered.
constexpr double kCoupledEntry = 48;

// Added by a method, of general contacts to the bytes of a contact.
struct MethodBytes {
  double velocity{0}, contact{0}, general_contact{0}, row{0};

  MethodBytes& operator+=(const MethodBytes& other) {
    velocity += other.velocity;
    contact += other.contact;
    general_contact += other.general_contact;
    row += other.row;
    return *this;
  }
};
// The vectors of GMRES, and a law of the rounds in each cone.
constexpr MethodBytes kCoulomb{
    .velocity = 8 * (kMaxGmresProducts + 5), .contact = 240, .general_contact = 240};
// States of the islands that are handed over, which may be all of them at once.
constexpr MethodBytes kInteriorPoint{
    .velocity = 16, .contact = 720, .general_contact = 590, .row = 230};

MethodBytes BytesOfMethod(const SolverOptions& options) {
  MethodBytes bytes;
  if (options.coulomb) bytes += kCoulomb;
  if (MayHandOver(options)) bytes += kInteriorPoint;
  return bytes;
}

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

double BytesOfTrees(const ContactProblemView& view, const MethodBytes& method) {
  const double bodies = Count(view.bodies.mass);
  return kTree * (Count(view.trees.dofs) + bodies) +
         (kVelocity + method.velocity) *
             (Count(view.trees.free_motion_velocity) + kBodyDofs * bodies) +
         kMatrixEntry * (Count(view.trees.dynamics_matrix) + kBodyMatrix * bodies) +
         kPair * Count(view.trees.coupled_a) + kCoupledEntry * Count(view.trees.coupling_block);
}

// `angular_entries`: of the angular Jacobian of each contact that is not given by Jacobians.
double BytesOfLaws(const ContactProblemView::Law& law, double contacts, double angular_entries,
                   const MethodBytes& method) {
  const bool has_angular = !law.torsional_friction.empty() || !law.rolling_friction.empty();
  const bool is_general =
      has_angular || !law.friction_2.empty() || !law.adhesion.empty() || !law.law.empty();
  const double friction = kContact + method.contact;
  const double general = kGeneralContact + method.general_contact;
  return contacts * (friction + (is_general ? general : 0) +
                     (has_angular ? kJacobianEntry * angular_entries : 0));
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
  double bytes() const {
    return (kPair * count * (count - 1) + kPairEntry * (sum * sum - squares)) / 2;
  }
};

double BytesOfContacts(const ContactProblemView& view, const Trees& trees,
                       const MethodBytes& method) {
  const auto given = static_cast<double>(CountContacts(view.contacts));
  const double between_bodies = Count(view.body_contacts.body_a);
  double bytes =
      BytesOfLaws(view.contacts.law, given, 0, method) +
      BytesOfLaws(view.body_contacts.law, between_bodies, kBodyJacobian, method) +
      kJacobianEntry * (Count(view.contacts.jacobian) + Count(view.contacts.angular_jacobian) +
                        kBodyJacobian * between_bodies) +
      static_cast<double>(
          std::ranges::count_if(view.body_contacts.body_b, [](int b) { return b >= 0; })) *
          (kPair + kPairEntry * kBodyMatrix);
  const size_t with_both = std::min(view.contacts.tree_a.size(), view.contacts.tree_b.size());
  for (size_t i = 0; i < with_both; ++i) {
    const double entries =
        trees.dofs(view.contacts.tree_a[i]) * trees.dofs(view.contacts.tree_b[i]);
    if (entries > 0) bytes += kPair + kPairEntry * entries;
  }
  const std::span<const int32_t> part_tree = view.contacts.part_tree;
  size_t part = 0;
  for (const uint32_t parts : view.contacts.parts) {
    TreesOfConstraint joined;
    for (const size_t end = std::min<size_t>(part_tree.size(), part + parts); part < end; ++part) {
      joined.Add(trees.dofs(part_tree[part]));
    }
    bytes += joined.bytes();
  }
  return bytes;
}

double BytesOfRows(const ContactProblemView& view, const MethodBytes& method, Trees* trees) {
  const auto indices = view.rows.velocity_index;
  double bytes = (kRow + method.row) * Count(view.rows.entries) + kRowEntry * Count(indices);
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
    bytes += joined.bytes();
  }
  return bytes;
}

}  // namespace

int64_t BytesOfSolve(const ContactProblemView& view, const SolverOptions& options) {
  // An invalid problem may ask for more than there are numbers for.
  constexpr double kMost = 1e15;
  const MethodBytes method = BytesOfMethod(options);
  Trees trees(view);
  return static_cast<int64_t>(std::min(kMost, kProblem + BytesOfTrees(view, method) +
                                                  BytesOfContacts(view, trees, method) +
                                                  BytesOfRows(view, method, &trees)));
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
