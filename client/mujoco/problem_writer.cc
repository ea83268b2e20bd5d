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

template <typename Value>
std::span<const Value> Part(const Value* buffer, int64_t begin, int64_t count) {
  return {buffer + begin, static_cast<size_t>(count)};
}

bool IsSparse(int32_t flags) { return (flags & SAP_MUJOCO_SPARSE) != 0; }
bool IsSap(int32_t flags) { return (flags & SAP_MUJOCO_LAW_SAP) != 0; }
bool IsChange(int32_t flags) { return (flags & SAP_MUJOCO_CHANGE) != 0; }

// Trees that a constraint touches, or that A couples with others.
std::vector<bool> ConstrainedTrees(const Trees& trees, const RowWriter& rows,
                                   const sap_mujoco_problem& problem) {
  const sap_mujoco_layout& layout = problem.layout;
  std::vector<bool> is_constrained(static_cast<size_t>(trees.count()));
  const auto mark = [&](std::span<const int32_t> touched) {
    for (const int32_t tree : touched) {
      if (tree >= 0) is_constrained[static_cast<size_t>(tree)] = true;
    }
  };
  for (const uint32_t dof : rows.columns()) {
    is_constrained[static_cast<size_t>(trees.OfDof(dof))] = true;
  }
  mark(Part(problem.integers, layout.trees,
            layout.part_trees > 0 ? layout.part_trees : 2 * layout.contacts));
  mark(Part(problem.integers, layout.coupled, 2 * layout.couplings));
  return is_constrained;
}

// Gives contacts the parameters of the material. Where it has none of the normal force, they keep
// R_n and v_hat, which need no relaxation time.
void ApplyMaterial(const sap_mujoco_material& material, sap_mujoco_layout* layout,
                   const ContactArrays& contacts) {
  const int64_t count = layout->contacts;
  layout->has_stiffness = material.stiffness != nullptr || material.relaxation_time != nullptr;
  if (!layout->has_stiffness) std::fill_n(contacts.relaxation_time, count, 0.0);
  const auto set = [count](const double* given, double* values) {
    if (given != nullptr) std::fill_n(values, count, *given);
  };
  set(material.stiffness, contacts.stiffness);
  set(material.relaxation_time, contacts.relaxation_time);
  set(material.friction, contacts.friction);
  set(material.friction, contacts.friction_2);
  if (material.friction != nullptr) layout->two_frictions = 0;
  if (!layout->has_stiffness) return;
  for (int64_t i = 0; i < count; ++i) {  // the velocity of the surface, -v_hat along t1 and t2
    double* v_hat = contacts.target + 3 * i;
    v_hat[2] = 0.0;
    for (int axis = 0; axis < 3; ++axis) v_hat[axis] = -v_hat[axis];
  }
}

void ViewContacts(const sap_mujoco_problem& problem, ContactProblemView::Contacts* contacts) {
  const sap_mujoco_layout& layout = problem.layout;
  const double* doubles = problem.doubles;
  const int64_t count = layout.contacts;
  const auto scalar = [&](int64_t i) { return Part(doubles, layout.scalars + i * count, count); };
  if (layout.part_trees > 0) {
    contacts->parts = Part(problem.unsigned_integers, layout.parts, count);
    contacts->part_tree = Part(problem.integers, layout.trees, layout.part_trees);
  } else {
    contacts->tree_a = Part(problem.integers, layout.trees, count);
    contacts->tree_b = Part(problem.integers, layout.trees + count, count);
  }
  contacts->jacobian = Part(doubles, layout.jacobian, layout.angular - layout.jacobian);
  ContactProblemView::Law& law = contacts->law;
  law.friction = scalar(0);
  if (layout.two_frictions) law.friction_2 = scalar(1);
  const auto target = Part(doubles, layout.target, 3 * count);
  law.relaxation_time = scalar(7);
  if (layout.has_stiffness) {
    law.signed_distance = scalar(5);
    law.stiffness = scalar(6);
    const auto is_moving = [](double value) { return value != 0.0; };
    if (std::ranges::any_of(target, is_moving)) law.surface_velocity = target;
  } else {
    if (!IsSap(problem.flags)) law.regularization_t = scalar(3);
    law.regularization_n = scalar(4);
    law.target_velocity = target;
  }
  if (layout.turning == 0) return;
  law.torsional_friction = scalar(2);
  law.rolling_friction = Part(doubles, layout.rolling, 2 * count);
  contacts->angular_jacobian = Part(doubles, layout.angular, layout.scalars - layout.angular);
  law.target_angular_velocity = Part(doubles, layout.target_angular, 3 * layout.turning);
}

}  // namespace

void MeasureProblem(const Fields& fields, const Trees& trees, const Couplings& couplings,
                    int32_t flags, sap_mujoco_problem* problem) {
  const ConstraintCounts counts = Constraints(fields, trees, IsSparse(flags), IsSap(flags)).Count();
  const bool has_more = IsSap(flags) || IsDiscrete(fields);
  const RowBounds more = has_more ? BoundsOfImplicitRows(fields) : RowBounds{};
  problem->flags = flags;
  problem->layout = MakeLayout(fields, trees, couplings, counts, more);
}

void WriteProblem(const Fields& fields, const Trees& trees, const Couplings& couplings,
                  const sap_mujoco_material& material, sap_mujoco_problem* problem) {
  sap_mujoco_layout* layout = &problem->layout;
  double* doubles = problem->doubles;
  uint32_t* unsigned_integers = problem->unsigned_integers;
  int32_t* integers = problem->integers;
  const bool is_sap = IsSap(problem->flags);
  const bool is_change = IsChange(problem->flags);
  const double sigma = is_sap ? material.sigma : 0.0;
  layout->has_slip = sigma > 0.0;
  for (int64_t tree = 0; tree < trees.count(); ++tree) {
    unsigned_integers[layout->sizes + tree] = static_cast<uint32_t>(trees.Size(tree));
  }
  const Constraints constraints(fields, trees, IsSparse(problem->flags), is_sap);
  RowWriter rows(doubles + layout->laws, layout->row_capacity, doubles + layout->coefficient,
                 unsigned_integers, unsigned_integers + layout->row_capacity);
  double* velocity = doubles + layout->velocities;
  if (is_change) std::fill_n(velocity, fields.nefc, 0.0);
  constraints.WriteRows(velocity, sigma, integers + layout->row, &rows);
  ContactArrays contacts = ContactsIn(*layout, doubles, integers);
  contacts.parts = unsigned_integers + layout->parts;
  layout->two_frictions = constraints.WriteContacts(velocity, integers + layout->contact, contacts);
  ApplyMaterial(is_sap ? material : sap_mujoco_material{}, layout, contacts);
  double* v_star = doubles + layout->v_star;
  couplings.WriteTrees(integers + layout->coupled);
  MatrixBlocks matrix(trees, couplings, doubles, doubles + layout->coupling);
  WriteDynamicsMatrix(fields, &matrix);
  if (is_change) {
    WriteChanges(fields, v_star, doubles + layout->guess);
  } else {
    WriteVelocities(fields, is_sap, v_star, doubles + layout->guess);
  }
  if (IsDiscrete(fields)) {
    const double* v_0 = is_change ? nullptr : fields.qvel;
    WriteEffectiveMetric(fields, trees, v_0, doubles, &matrix, v_star, &rows);
    WriteGyroscopicSteps(fields, trees, ConstrainedTrees(trees, rows, *problem), v_0, doubles,
                         v_star);
    std::fill_n(integers + layout->joint, rows.rows() - layout->simulator_rows, -1);
  } else if (is_sap) {
    MakeForcesImplicit(fields, trees, ServosIn(fields, *layout, doubles), &matrix, v_star, &rows,
                       integers + layout->joint);
  }
  layout->rows = rows.rows();
  layout->non_zeros = rows.non_zeros();
}

ContactProblemView ViewOf(const Fields& fields, const sap_mujoco_problem& problem) {
  const sap_mujoco_layout& layout = problem.layout;
  const double* doubles = problem.doubles;
  ContactProblemView view;
  view.time_step = fields.timestep;
  view.trees.dofs = Part(problem.unsigned_integers, layout.sizes, layout.tree_count);
  view.trees.dynamics_matrix = Part(doubles, 0, layout.v_star);
  view.trees.free_motion_velocity = Part(doubles, layout.v_star, fields.nv);
  view.trees.guess_velocity = Part(doubles, layout.guess, fields.nv);
  const int64_t coupled = layout.couplings;
  view.trees.coupled_a = Part(problem.integers, layout.coupled, coupled);
  view.trees.coupled_b = Part(problem.integers, layout.coupled + coupled, coupled);
  view.trees.coupling_block = Part(doubles, layout.coupling, layout.doubles - layout.coupling);

  const auto law = [&](int64_t i) {
    return Part(doubles, layout.laws + i * layout.row_capacity, layout.rows);
  };
  view.rows.entries = Part(problem.unsigned_integers, 0, layout.rows);
  view.rows.velocity_index = Part(problem.unsigned_integers, layout.row_capacity, layout.non_zeros);
  view.rows.coefficient = Part(doubles, layout.coefficient, layout.non_zeros);
  view.rows.regularization = law(0);
  view.rows.target_velocity = law(1);
  view.rows.force_lower = law(2);
  view.rows.force_upper = law(3);
  if (layout.rows > layout.simulator_rows) view.rows.force_offset = law(4);
  if (layout.has_slip) view.rows.slip_parameter = law(5);
  if (layout.contacts > 0) ViewContacts(problem, &view.contacts);
  return view;
}

void StoreForces(const Fields& fields, const sap_mujoco_problem& problem,
                 const ContactSolution& solution) {
  const sap_mujoco_layout& layout = problem.layout;
  const int32_t* integers = problem.integers;
  if (fields.nefc > 0) {
    const ConstraintImpulses impulses = {.row = Part(integers, layout.row, layout.simulator_rows),
                                         .contact = Part(integers, layout.contact, layout.contacts),
                                         .row_impulse = solution.row_impulse.data(),
                                         .impulse = solution.impulse.data(),
                                         .angular_impulse = solution.angular_impulse.data()};
    StoreConstraintForces(fields, impulses, ContactsIn(layout, problem.doubles, problem.integers));
  }
  if (!IsSap(problem.flags) || IsDiscrete(fields)) return;
  const int64_t own_rows = layout.rows - layout.simulator_rows;
  StoreServoForces(fields, ServosIn(fields, layout, problem.doubles), solution.velocity.data(),
                   Part(integers, layout.joint, own_rows),
                   solution.row_impulse.data() + layout.simulator_rows);
}

}  // namespace sap::mujoco
