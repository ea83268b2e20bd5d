#include "client/mujoco/constraint_stage.h"

#include <algorithm>
#include <memory>
#include <span>

#include "client/mujoco/constraint_forces.h"
#include "client/mujoco/layout.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {
namespace {

// MuJoCo's own default is the least exact that is solved to.
constexpr double kMinTolerance = 1e-12;
constexpr double kMaxTolerance = 1e-8;

SolverOptions OptionsOf(const Fields& fields) {
  SolverOptions options;
  options.relative_tolerance = std::clamp(fields.tolerance, kMinTolerance, kMaxTolerance);
  return options;
}

bool IsSolved(const IslandReport& island) {
  return island.status == SolveStatus::kConverged ||
         island.status == SolveStatus::kStalledAtRoundoff;
}

template <typename Type>
std::span<const Type> Part(const std::vector<Type>& buffer, int64_t begin, int64_t count) {
  return std::span(buffer).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
}

// For MuJoCo's viewer, which shows islands that it numbers by their lowest tree too.
void StoreIterations(const Fields& fields, const std::vector<IslandReport>& islands) {
  std::ranges::fill(fields.solver_niter, 0);
  std::ranges::fill(fields.solver_nnz, 0);
  for (size_t i = 0; i < std::min(islands.size(), fields.solver_niter.size()); ++i) {
    fields.solver_niter[i] = islands[i].iterations;
  }
}

}  // namespace

tl::expected<int64_t, EngineError> ConstraintStage::Run(const sap_mujoco_field* table,
                                                        const void* model, void* data,
                                                        int32_t flags) {
  const Fields fields = ReadFields(table, model, data);
  const bool is_sparse = (flags & SAP_MUJOCO_SPARSE) != 0;
  if (!(flags & SAP_MUJOCO_ALWAYS) && !IsSapFaster(work_.Count(fields, Trees(fields), is_sparse))) {
    return SAP_MUJOCO_SLOWER;
  }
  Build(table, model, data, flags);
  if (EngineStatus read = task_.Read(View(fields)); !read) return tl::unexpected(read.error());
  EngineStatus solved =
      task_.Solve(&solver_, OptionsOf(fields), CallLimits{}, SolveLimits{}, &solution_);
  if (!solved) return tl::unexpected(solved.error());
  if (!std::ranges::all_of(solution_.islands, IsSolved)) {
    return tl::unexpected(EngineError{EngineErrorCode::kInternal, "an island is not solved", ""});
  }
  Store(fields, is_sparse);
  return static_cast<int64_t>(solution_.islands.size());
}

void ConstraintStage::Build(const sap_mujoco_field* table, const void* model, const void* data,
                            int32_t flags) {
  flags = (flags & SAP_MUJOCO_SPARSE) | SAP_MUJOCO_CHANGE;
  sap_mujoco_measure(table, model, data, flags, &layout_);
  doubles_.resize(static_cast<size_t>(layout_.doubles));
  unsigned_.resize(static_cast<size_t>(layout_.unsigned_integers));
  integers_.resize(static_cast<size_t>(layout_.integers));
  sap_mujoco_build(table, model, data, flags, 0.0, &layout_, doubles_.data(), unsigned_.data(),
                   integers_.data());
}

ContactProblemView ConstraintStage::View(const Fields& fields) {
  ContactProblemView view;
  view.time_step = fields.timestep;
  view.trees.dofs = {reinterpret_cast<const uint32_t*>(fields.tree_dofnum),
                     static_cast<size_t>(fields.ntree)};
  view.trees.dynamics_matrix = Part(doubles_, 0, layout_.v_star);
  view.trees.free_motion_velocity = Part(doubles_, layout_.v_star, fields.nv);
  view.trees.guess_velocity = Part(doubles_, layout_.guess, fields.nv);

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

  const int64_t count = layout_.contacts;
  if (count == 0) return view;
  const auto scalar = [&](int64_t i) { return Part(doubles_, layout_.scalars + i * count, count); };
  zeros_.resize(static_cast<size_t>(count));
  view.contacts.tree_a = Part(integers_, layout_.trees, count);
  view.contacts.tree_b = Part(integers_, layout_.trees + count, count);
  view.contacts.jacobian = Part(doubles_, layout_.jacobian, layout_.angular - layout_.jacobian);
  view.contacts.law.friction = scalar(0);
  if (layout_.two_frictions) view.contacts.law.friction_2 = scalar(1);
  view.contacts.law.regularization_t = scalar(3);
  view.contacts.law.regularization_n = scalar(4);
  view.contacts.law.relaxation_time = zeros_;
  view.contacts.law.target_velocity = Part(doubles_, layout_.target, 3 * count);
  if (layout_.turning == 0) return view;
  view.contacts.law.torsional_friction = scalar(2);
  view.contacts.law.rolling_friction = Part(doubles_, layout_.rolling, 2 * count);
  view.contacts.angular_jacobian =
      Part(doubles_, layout_.angular, layout_.scalars - layout_.angular);
  view.contacts.law.target_angular_velocity =
      Part(doubles_, layout_.target_angular, 3 * layout_.turning);
  return view;
}

void ConstraintStage::Store(const Fields& fields, bool is_sparse) {
  const ConstraintImpulses impulses = {
      .row = Part(integers_, layout_.row, layout_.rows),
      .contact = Part(integers_, layout_.contact, layout_.contacts),
      .row_impulse = solution_.row_impulse.data(),
      .impulse = solution_.impulse.data(),
      .angular_impulse = solution_.angular_impulse.data()};
  StoreConstraintForces(fields, impulses, ContactsIn(layout_, doubles_.data(), integers_.data()));
  StoreGeneralizedForce(fields, is_sparse);
  for (int64_t i = 0; i < fields.nv; ++i) {
    const bool is_free = solution_.island_of_tree[fields.dof_treeid[i]] < 0;
    fields.qacc[i] = is_free ? fields.qacc_smooth[i] : solution_.velocity[i] / fields.timestep;
  }
  StoreIterations(fields, solution_.islands);
}

}  // namespace sap::mujoco

int64_t sap_mujoco_solve_constraints(const sap_mujoco_field* fields, const void* model, void* data,
                                     int32_t flags) {
  // A thread keeps its memory. What an exception leaves is undefined, so that it is made anew.
  static thread_local std::unique_ptr<sap::mujoco::ConstraintStage> kept;
  const auto islands = sap::CatchExceptions([&]() -> tl::expected<int64_t, sap::EngineError> {
    auto stage = std::move(kept);
    if (stage == nullptr) stage = std::make_unique<sap::mujoco::ConstraintStage>();
    auto run = stage->Run(fields, model, data, flags);
    kept = std::move(stage);
    return run;
  });
  return islands.value_or(SAP_MUJOCO_UNSOLVED);
}
