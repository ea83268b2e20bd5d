#include "client/mujoco/layout.h"

namespace sap::mujoco {
namespace {

constexpr int64_t kLaws = 6;     // arrays of numbers per row
constexpr int64_t kScalars = 8;  // per contact

// Hands out consecutive parts of a buffer.
class Buffer {
 public:
  int64_t Take(int64_t count) {
    const int64_t begin = length_;
    length_ += count;
    return begin;
  }
  int64_t length() const { return length_; }

 private:
  int64_t length_ = 0;
};

}  // namespace

RowBounds BoundsOfImplicitRows(const Fields& fields) {
  // An actuator may have a row of its own and one of its damper.
  RowBounds bounds = {2 * fields.nactuator + fields.njnt + fields.ntendon, fields.njnt};
  for (int64_t i = 0; i < fields.nout; ++i) bounds.non_zeros += 2 * fields.moment_rownnz[i];
  for (int64_t i = 0; i < fields.ntendon; ++i) bounds.non_zeros += fields.ten_J_rownnz[i];
  return bounds;
}

sap_mujoco_layout MakeLayout(const Fields& fields, const Trees& trees, const Couplings& couplings,
                             const ConstraintCounts& counts, const RowBounds& more) {
  sap_mujoco_layout layout = {};
  layout.rows = layout.simulator_rows = counts.rows;
  layout.contacts = counts.contacts;
  layout.turning = counts.turning;
  layout.part_trees = counts.parts;
  layout.tree_count = trees.count();
  layout.couplings = couplings.count();
  layout.row_capacity = counts.rows + more.rows;
  const int64_t non_zeros = counts.non_zeros + more.non_zeros;
  Buffer doubles;
  doubles.Take(trees.block_values());
  layout.v_star = doubles.Take(fields.nv);
  layout.guess = doubles.Take(fields.nv);
  layout.laws = doubles.Take(kLaws * layout.row_capacity);
  layout.coefficient = doubles.Take(non_zeros);
  layout.jacobian = doubles.Take(counts.jacobian);
  layout.angular = doubles.Take(counts.angular);
  layout.scalars = doubles.Take(kScalars * counts.contacts);
  layout.rolling = doubles.Take(2 * counts.contacts);
  layout.target = doubles.Take(3 * counts.contacts);
  layout.target_angular = doubles.Take(3 * counts.turning);
  layout.servos = doubles.Take(kServoDoubles * fields.nactuator);
  layout.velocities = doubles.Take(fields.nefc);
  layout.coupling = doubles.Take(couplings.values());
  layout.doubles = doubles.length();
  const bool has_parts = counts.parts > 0;
  Buffer unsigned_integers;
  unsigned_integers.Take(layout.row_capacity + non_zeros);
  layout.parts = unsigned_integers.Take(has_parts ? counts.contacts : 0);
  layout.sizes = unsigned_integers.Take(trees.count());
  layout.unsigned_integers = unsigned_integers.length();
  Buffer integers;
  layout.row = integers.Take(counts.rows);
  layout.contact = integers.Take(counts.contacts);
  layout.trees = integers.Take(has_parts ? counts.parts : 2 * counts.contacts);
  layout.joint = integers.Take(more.rows);
  layout.coupled = integers.Take(2 * couplings.count());
  layout.integers = integers.length();
  return layout;
}

ContactArrays ContactsIn(const sap_mujoco_layout& layout, double* doubles, int32_t* integers) {
  const int64_t count = layout.contacts;
  double* scalars = doubles + layout.scalars;
  int32_t* trees = integers + layout.trees;
  return {.tree_a = trees,
          .tree_b = trees + count,
          .parts = nullptr,
          .part_tree = trees,
          .jacobian = doubles + layout.jacobian,
          .angular = doubles + layout.angular,
          .friction = scalars,
          .friction_2 = scalars + count,
          .torsional = scalars + 2 * count,
          .rolling = doubles + layout.rolling,
          .R_t = scalars + 3 * count,
          .R_n = scalars + 4 * count,
          .signed_distance = scalars + 5 * count,
          .stiffness = scalars + 6 * count,
          .relaxation_time = scalars + 7 * count,
          .target = doubles + layout.target,
          .target_angular = doubles + layout.target_angular};
}

std::span<Servo> ServosIn(const Fields& fields, const sap_mujoco_layout& layout, double* doubles) {
  auto* servos = reinterpret_cast<Servo*>(doubles + layout.servos);
  return {servos, static_cast<size_t>(fields.nactuator)};
}

}  // namespace sap::mujoco
