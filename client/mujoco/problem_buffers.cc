#include "client/mujoco/problem_buffers.h"

#include <span>

namespace sap::mujoco {
namespace {

constexpr double kSigma = 1e-3;  // of the law of SAP

// Arguments of MuJoCo's product. Trivially destructible, since MuJoCo's errors leave by longjmp.
struct ProductContext {
  const MujocoCalls& calls;
  const void* model;
  const void* data;
  double* result;  // J v_0
  const double* vector;
};

void MultiplyJacobian(void* context) {
  const auto& c = *static_cast<ProductContext*>(context);
  c.calls.multiply_jacobian(c.model, c.data, c.result, c.vector);
}

template <typename Type>
std::span<const Type> Part(const std::vector<Type>& buffer, int64_t begin, int64_t count) {
  return std::span(buffer).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
}

}  // namespace

EngineStatus ProblemBuffers::Build(const MujocoCalls& calls, const void* model, const void* data,
                                   const Fields& fields, bool as_sap) {
  const Trees trees(fields);
  Measure(fields, trees,
          (as_sap ? SAP_MUJOCO_LAW_SAP : 0) | (calls.is_sparse(model) ? SAP_MUJOCO_SPARSE : 0));
  if (fields.nefc > 0) {
    ProductContext product = {calls, model, data, doubles_.data() + layout_.velocities,
                              fields.qvel};
    EngineStatus multiplied = calls.Run(&MultiplyJacobian, &product);
    if (!multiplied) return multiplied;
  }
  Write(fields, trees, as_sap ? kSigma : 0.0);
  return {};
}

void ProblemBuffers::BuildChange(const Fields& fields, const Trees& trees, bool is_sparse) {
  Measure(fields, trees, (is_sparse ? SAP_MUJOCO_SPARSE : 0) | SAP_MUJOCO_CHANGE);
  Write(fields, trees, 0.0);
}

void ProblemBuffers::Measure(const Fields& fields, const Trees& trees, int32_t flags) {
  flags_ = flags;
  couplings_.Update(fields, trees);
  layout_ = MeasureProblem(fields, trees, *couplings_, flags);
  doubles_.resize(static_cast<size_t>(layout_.doubles));
  unsigned_.resize(static_cast<size_t>(layout_.unsigned_integers));
  integers_.resize(static_cast<size_t>(layout_.integers));
}

void ProblemBuffers::Write(const Fields& fields, const Trees& trees, double sigma) {
  has_slip_ = sigma > 0.0;
  WriteProblem(fields, trees, *couplings_, flags_, sigma, &layout_, doubles_.data(),
               unsigned_.data(), integers_.data());
}

void ProblemBuffers::Store(const Fields& fields, const ContactSolution& solution) {
  StoreForces(fields, flags_, layout_, doubles_.data(), integers_.data(),
              {solution.velocity.data(), solution.row_impulse.data(), solution.impulse.data(),
               solution.angular_impulse.data()});
}

ContactProblemView ProblemBuffers::View(const Fields& fields) {
  ContactProblemView view;
  view.time_step = fields.timestep;
  view.trees.dofs = Part(unsigned_, layout_.sizes, layout_.tree_count);
  view.trees.dynamics_matrix = Part(doubles_, 0, layout_.v_star);
  view.trees.free_motion_velocity = Part(doubles_, layout_.v_star, fields.nv);
  view.trees.guess_velocity = Part(doubles_, layout_.guess, fields.nv);
  const int64_t coupled = layout_.couplings;
  view.trees.coupled_a = Part(integers_, layout_.coupled, coupled);
  view.trees.coupled_b = Part(integers_, layout_.coupled + coupled, coupled);
  view.trees.coupling_block = Part(doubles_, layout_.coupling, layout_.doubles - layout_.coupling);

  const auto law = [this](int64_t i) {
    return Part(doubles_, layout_.laws + i * layout_.row_capacity, layout_.rows);
  };
  view.rows.entries = Part(unsigned_, 0, layout_.rows);
  view.rows.velocity_index = Part(unsigned_, layout_.row_capacity, layout_.non_zeros);
  view.rows.coefficient = Part(doubles_, layout_.coefficient, layout_.non_zeros);
  view.rows.regularization = law(0);
  view.rows.target_velocity = law(1);
  view.rows.force_lower = law(2);
  view.rows.force_upper = law(3);
  if (layout_.rows > layout_.simulator_rows) view.rows.force_offset = law(4);
  if (has_slip_) view.rows.slip_parameter = law(5);
  if (layout_.contacts > 0) ViewContacts(&view.contacts);
  return view;
}

void ProblemBuffers::ViewContacts(ContactProblemView::Contacts* contacts) {
  const int64_t count = layout_.contacts;
  const auto scalar = [&](int64_t i) { return Part(doubles_, layout_.scalars + i * count, count); };
  zeros_.resize(static_cast<size_t>(count));
  if (layout_.part_trees > 0) {
    contacts->parts = Part(unsigned_, layout_.parts, count);
    contacts->part_tree = Part(integers_, layout_.trees, layout_.part_trees);
  } else {
    contacts->tree_a = Part(integers_, layout_.trees, count);
    contacts->tree_b = Part(integers_, layout_.trees + count, count);
  }
  contacts->jacobian = Part(doubles_, layout_.jacobian, layout_.angular - layout_.jacobian);
  contacts->law.friction = scalar(0);
  if (layout_.two_frictions) contacts->law.friction_2 = scalar(1);
  if (!is_sap()) contacts->law.regularization_t = scalar(3);
  contacts->law.regularization_n = scalar(4);
  contacts->law.relaxation_time = zeros_;
  contacts->law.target_velocity = Part(doubles_, layout_.target, 3 * count);
  if (layout_.turning == 0) return;
  contacts->law.torsional_friction = scalar(2);
  contacts->law.rolling_friction = Part(doubles_, layout_.rolling, 2 * count);
  contacts->angular_jacobian = Part(doubles_, layout_.angular, layout_.scalars - layout_.angular);
  contacts->law.target_angular_velocity =
      Part(doubles_, layout_.target_angular, 3 * layout_.turning);
}

}  // namespace sap::mujoco
