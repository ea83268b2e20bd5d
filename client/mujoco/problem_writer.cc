#include "client/mujoco/problem_writer.h"

#include <algorithm>
#include <span>
#include <vector>

#include "client/mujoco/constraint_forces.h"
#include "client/mujoco/dynamics.h"
#include "client/mujoco/effective_metric.h"
#include "client/mujoco/layout.h"

namespace sap::mujoco {
namespace {

std::span<const int32_t> List(const int32_t* values, int64_t count) {
  return {values, static_cast<size_t>(count)};
}

bool IsSparse(int32_t flags) { return (flags & SAP_MUJOCO_SPARSE) != 0; }
bool IsSap(int32_t flags) { return (flags & SAP_MUJOCO_LAW_SAP) != 0; }
bool IsChange(int32_t flags) { return (flags & SAP_MUJOCO_CHANGE) != 0; }

// Trees that a constraint touches, or that A couples with others.
std::vector<bool> ConstrainedTrees(const Trees& trees, const RowWriter& rows,
                                   const sap_mujoco_layout& layout, const int32_t* integers) {
  std::vector<bool> is_constrained(static_cast<size_t>(trees.count()));
  const auto mark = [&](std::span<const int32_t> touched) {
    for (const int32_t tree : touched) {
      if (tree >= 0) is_constrained[static_cast<size_t>(tree)] = true;
    }
  };
  for (const uint32_t dof : rows.columns()) {
    is_constrained[static_cast<size_t>(trees.OfDof(dof))] = true;
  }
  mark(List(integers + layout.trees,
            layout.part_trees > 0 ? layout.part_trees : 2 * layout.contacts));
  mark(List(integers + layout.coupled, 2 * layout.couplings));
  return is_constrained;
}

}  // namespace

sap_mujoco_layout MeasureProblem(const Fields& fields, const Trees& trees,
                                 const Couplings& couplings, int32_t flags) {
  const ConstraintCounts counts = Constraints(fields, trees, IsSparse(flags), IsSap(flags)).Count();
  const bool has_more = IsSap(flags) || IsDiscrete(fields);
  const RowBounds more = has_more ? BoundsOfImplicitRows(fields) : RowBounds{};
  return MakeLayout(fields, trees, couplings, counts, more);
}

void WriteProblem(const Fields& fields, const Trees& trees, const Couplings& couplings,
                  int32_t flags, double sigma, sap_mujoco_layout* layout, double* doubles,
                  uint32_t* unsigned_integers, int32_t* integers) {
  for (int64_t tree = 0; tree < trees.count(); ++tree) {
    unsigned_integers[layout->sizes + tree] = static_cast<uint32_t>(trees.Size(tree));
  }
  const Constraints constraints(fields, trees, IsSparse(flags), IsSap(flags));
  RowWriter rows(doubles + layout->laws, layout->row_capacity, doubles + layout->coefficient,
                 unsigned_integers, unsigned_integers + layout->row_capacity);
  double* velocity = doubles + layout->velocities;
  if (IsChange(flags)) std::fill_n(velocity, fields.nefc, 0.0);
  constraints.WriteRows(velocity, sigma, integers + layout->row, &rows);
  ContactArrays contacts = ContactsIn(*layout, doubles, integers);
  contacts.parts = unsigned_integers + layout->parts;
  layout->two_frictions = constraints.WriteContacts(velocity, integers + layout->contact, contacts);
  double* v_star = doubles + layout->v_star;
  couplings.WriteTrees(integers + layout->coupled);
  MatrixBlocks matrix(trees, couplings, doubles, doubles + layout->coupling);
  WriteDynamicsMatrix(fields, &matrix);
  if (IsChange(flags)) {
    WriteChanges(fields, v_star, doubles + layout->guess);
  } else {
    WriteVelocities(fields, IsSap(flags), v_star, doubles + layout->guess);
  }
  if (IsDiscrete(fields)) {
    const double* v_0 = IsChange(flags) ? nullptr : fields.qvel;
    WriteEffectiveMetric(fields, trees, v_0, doubles, &matrix, v_star, &rows);
    WriteGyroscopicSteps(fields, trees, ConstrainedTrees(trees, rows, *layout, integers), v_0,
                         doubles, v_star);
    std::fill_n(integers + layout->joint, rows.rows() - layout->simulator_rows, -1);
  } else if (IsSap(flags)) {
    MakeForcesImplicit(fields, trees, ServosIn(fields, *layout, doubles), &matrix, v_star, &rows,
                       integers + layout->joint);
  }
  layout->rows = rows.rows();
  layout->non_zeros = rows.non_zeros();
}

void StoreForces(const Fields& fields, int32_t flags, const sap_mujoco_layout& layout,
                 double* doubles, int32_t* integers, const SolvedArrays& solution) {
  if (fields.nefc > 0) {
    const ConstraintImpulses impulses = {
        .row = List(integers + layout.row, layout.simulator_rows),
        .contact = List(integers + layout.contact, layout.contacts),
        .row_impulse = solution.row_impulse,
        .impulse = solution.impulse,
        .angular_impulse = solution.angular_impulse};
    StoreConstraintForces(fields, impulses, ContactsIn(layout, doubles, integers));
  }
  if (!IsSap(flags) || IsDiscrete(fields)) return;
  const int64_t own_rows = layout.rows - layout.simulator_rows;
  StoreServoForces(fields, ServosIn(fields, layout, doubles), solution.velocity,
                   List(integers + layout.joint, own_rows),
                   solution.row_impulse + layout.simulator_rows);
}

}  // namespace sap::mujoco
