#include "client/c/mujoco/adapter.h"

#include <algorithm>
#include <span>

#include "client/c/mujoco/comparison.h"
#include "client/c/mujoco/constraint_forces.h"
#include "client/c/mujoco/dynamics.h"

namespace sap::mujoco {
namespace {

constexpr int64_t kLaws = 6;     // arrays of numbers per row
constexpr int64_t kScalars = 8;  // per contact

// Upper bounds of what the actuators and tendons of a model become.
struct RowBounds {
  int64_t rows;
  int64_t non_zeros;
};

RowBounds BoundsOfImplicitRows(const Fields& fields) {
  // An actuator may have a row of its own and one of its damper.
  RowBounds bounds = {2 * fields.nactuator + fields.njnt + fields.ntendon, fields.njnt};
  for (int64_t i = 0; i < fields.nout; ++i) bounds.non_zeros += 2 * fields.moment_rownnz[i];
  for (int64_t i = 0; i < fields.ntendon; ++i) bounds.non_zeros += fields.ten_J_rownnz[i];
  return bounds;
}

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

sap_mujoco_layout MakeLayout(const Fields& fields, int64_t block_values,
                             const ConstraintCounts& counts, const RowBounds& more) {
  sap_mujoco_layout layout = {};
  layout.rows = layout.simulator_rows = counts.rows;
  layout.contacts = counts.contacts;
  layout.turning = counts.turning;
  layout.row_capacity = counts.rows + more.rows;
  const int64_t non_zeros = counts.non_zeros + more.non_zeros;
  Buffer doubles;
  doubles.Take(block_values);
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
  layout.doubles = doubles.length();
  layout.unsigned_integers = layout.row_capacity + non_zeros;
  Buffer integers;
  layout.row = integers.Take(counts.rows);
  layout.contact = integers.Take(counts.contacts);
  layout.trees = integers.Take(2 * counts.contacts);
  layout.joint = integers.Take(more.rows);
  layout.integers = integers.length();
  return layout;
}

ContactArrays ContactsIn(const sap_mujoco_layout& layout, double* doubles, int32_t* integers) {
  const int64_t count = layout.contacts;
  double* scalars = doubles + layout.scalars;
  int32_t* trees = integers + layout.trees;
  return {.tree_a = trees,
          .tree_b = trees + count,
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

std::span<const int32_t> List(const int32_t* values, int64_t count) {
  return {values, static_cast<size_t>(count)};
}

bool IsSparse(int32_t flags) { return (flags & SAP_MUJOCO_SPARSE) != 0; }
bool IsSap(int32_t flags) { return (flags & SAP_MUJOCO_LAW_SAP) != 0; }

}  // namespace
}  // namespace sap::mujoco

int64_t sap_mujoco_layout_size() { return sizeof(sap_mujoco_layout); }

void sap_mujoco_measure(const sap_mujoco_field* table, const void* model, const void* data,
                        int32_t flags, sap_mujoco_layout* layout) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  const Trees trees(fields);
  const ConstraintCounts counts = Constraints(fields, trees, IsSparse(flags), IsSap(flags)).Count();
  const RowBounds more = IsSap(flags) ? BoundsOfImplicitRows(fields) : RowBounds{};
  *layout = MakeLayout(fields, trees.block_values(), counts, more);
}

void sap_mujoco_build(const sap_mujoco_field* table, const void* model, const void* data,
                      int32_t flags, double sigma, sap_mujoco_layout* layout, double* doubles,
                      uint32_t* unsigned_integers, int32_t* integers) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  const Trees trees(fields);
  const Constraints constraints(fields, trees, IsSparse(flags), IsSap(flags));
  RowWriter rows(doubles + layout->laws, layout->row_capacity, doubles + layout->coefficient,
                 unsigned_integers, unsigned_integers + layout->row_capacity);
  const double* velocity = doubles + layout->velocities;
  constraints.WriteRows(velocity, sigma, integers + layout->row, &rows);
  layout->two_frictions = constraints.WriteContacts(velocity, integers + layout->contact,
                                                    ContactsIn(*layout, doubles, integers));
  double* v_star = doubles + layout->v_star;
  std::copy_n(fields.qvel, fields.nv, doubles + layout->guess);
  WriteDynamics(fields, trees, doubles, v_star);
  if (IsSap(flags)) {
    MakeForcesImplicit(fields, trees, ServosIn(fields, *layout, doubles), doubles, v_star, &rows,
                       integers + layout->joint);
  }
  layout->rows = rows.rows();
  layout->non_zeros = rows.non_zeros();
}

void sap_mujoco_store_forces(const sap_mujoco_field* table, const void* model, const void* data,
                             int32_t flags, const sap_mujoco_layout* layout, double* doubles,
                             int32_t* integers, const double* solution) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  const double* row_impulse = solution + fields.nv;
  const double* impulse = row_impulse + layout->rows;
  if (fields.nefc > 0) {
    const ConstraintImpulses impulses = {
        .row = List(integers + layout->row, layout->simulator_rows),
        .contact = List(integers + layout->contact, layout->contacts),
        .row_impulse = row_impulse,
        .impulse = impulse,
        .angular_impulse = impulse + 3 * layout->contacts};
    StoreConstraintForces(fields, impulses, ContactsIn(*layout, doubles, integers));
  }
  if (!IsSap(flags)) return;
  const int64_t own_rows = layout->rows - layout->simulator_rows;
  StoreServoForces(fields, ServosIn(fields, *layout, doubles), solution,
                   List(integers + layout->joint, own_rows), row_impulse + layout->simulator_rows);
}

void sap_mujoco_compare(const sap_mujoco_field* table, const void* model, const void* data,
                        const sap_mujoco_velocities* velocities, double* tree_error,
                        sap_mujoco_comparison* comparison) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  *comparison = Compare(fields, Trees(fields), *velocities, tree_error);
}
