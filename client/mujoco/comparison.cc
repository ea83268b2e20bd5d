#include "client/mujoco/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace sap::mujoco {
namespace {

// Squares of norms and what the smallest scale depends on, of trees that count together.
struct Squares {
  double error = 0.0;
  double motion = 0.0;
  double constraints = 0.0;
  double mass = 0.0;  // trace of M
  int64_t dofs = 0;

  void Add(const Squares& other) {
    error += other.error;
    motion += other.motion;
    constraints += other.constraints;
    mass += other.mass;
    dofs += other.dofs;
  }

  double Scale(double slow) const {
    const double least = slow * slow * mass / static_cast<double>(std::max<int64_t>(dofs, 1));
    return std::sqrt(std::max({motion, constraints, least}));
  }
};

bool IsAtRest(const double* velocity, int64_t first, int64_t dofs) {
  return std::all_of(velocity + first, velocity + first + dofs, [](double v) { return v == 0.0; });
}

// x' M x over the rows of a tree; M has its lower triangle, the diagonal last in each row.
template <typename Vector>
double Square(const Fields& fields, int64_t first, int64_t dofs, const Vector& x) {
  double square = 0.0;
  for (int64_t row = first; row < first + dofs; ++row) {
    const int64_t begin = fields.M_rowadr[row];
    const int64_t diagonal = begin + fields.M_rownnz[row] - 1;
    double product = 0.0;
    for (int64_t k = begin; k < diagonal; ++k) product += fields.M[k] * x(fields.M_colind[k]);
    square += x(row) * (2.0 * product + fields.M[diagonal] * x(row));
  }
  return std::max(square, 0.0);
}

Squares SquaresOf(const Fields& fields, int64_t first, int64_t dofs,
                  const sap_mujoco_velocities& v) {
  Squares squares;
  squares.dofs = dofs;
  for (int64_t row = first; row < first + dofs; ++row) {
    squares.mass += fields.M[fields.M_rowadr[row] + fields.M_rownnz[row] - 1];
  }
  squares.error =
      Square(fields, first, dofs, [&](int64_t i) { return v.recorded[i] - v.exact[i]; });
  squares.motion = Square(fields, first, dofs, [&](int64_t i) { return v.exact[i]; });
  squares.constraints =
      Square(fields, first, dofs, [&](int64_t i) { return v.v_free[i] - v.solution[i]; });
  return squares;
}

}  // namespace

sap_mujoco_comparison Compare(const Fields& fields, const Trees& trees,
                              const sap_mujoco_velocities& velocities, double* tree_error) {
  Squares whole;
  // Squares of the islands, then of trees without constraints.
  std::vector<Squares> islands(static_cast<size_t>(2 * trees.count()));
  std::vector<int64_t> first_tree(islands.size(), -1);
  sap_mujoco_comparison result = {};
  for (int64_t tree = 0; tree < fields.ntree; ++tree) {
    const int64_t first = fields.tree_dofadr[tree];
    const int64_t dofs = fields.tree_dofnum[tree];
    Squares squares = SquaresOf(fields, first, dofs, velocities);
    if (velocities.sleeps != 0 && IsAtRest(velocities.recorded, first, dofs)) {
      squares.error = 0.0;
      ++result.asleep;
    }
    tree_error[tree] = std::sqrt(squares.error);
    const int32_t island = velocities.island_of_tree[trees.OfDof(first)];
    const auto place = static_cast<size_t>(island >= 0 ? island : trees.count() + tree);
    islands[place].Add(squares);
    if (first_tree[place] < 0) first_tree[place] = tree;
    whole.Add(squares);
  }
  result.scale = whole.Scale(velocities.slow);
  result.error = std::sqrt(whole.error) / result.scale;
  const double gap = std::accumulate(velocities.gap, velocities.gap + velocities.islands, 0.0);
  const double distance = std::sqrt(2.0 * gap) / result.scale;
  result.bound =
      std::isfinite(distance) ? result.error + distance : std::numeric_limits<double>::infinity();
  result.island_error = -1.0;
  for (size_t place = 0; place < islands.size(); ++place) {
    if (first_tree[place] < 0) continue;
    const double error = std::sqrt(islands[place].error) / islands[place].Scale(velocities.slow);
    if (error <= result.island_error) continue;
    result.island_error = error;
    result.worst_tree = first_tree[place];
  }
  return result;
}

}  // namespace sap::mujoco
