#include "client/mujoco/constraint_stage.h"

#include <algorithm>
#include <memory>

#include "client/mujoco/constraint_forces.h"
#include "client/mujoco/effective_metric.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {
namespace {

// MuJoCo's own default is the least exact that is solved to.
constexpr double kMinTolerance = 1e-12;
constexpr double kMaxTolerance = 1e-8;

SolverOptions OptionsOf(const Fields& fields) {
  SolverOptions options;
  options.relative_tolerance = std::clamp(fields.tolerance, kMinTolerance, kMaxTolerance);
  options.max_iterations =
      static_cast<int>(std::min<int64_t>(options.max_iterations, fields.iterations));
  return options;
}

bool NeedsMoreIterations(const IslandReport& island) {
  return island.status == SolveStatus::kIterationLimit;
}

}  // namespace

bool IsSolved(const IslandReport& island) {
  return island.status == SolveStatus::kConverged ||
         island.status == SolveStatus::kStalledAtRoundoff;
}

sap_mujoco_certificate Certify(const ContactSolution& solution) {
  sap_mujoco_certificate certificate = {};
  certificate.islands = static_cast<int64_t>(solution.islands.size());
  for (const IslandReport& island : solution.islands) {
    certificate.unsolved += !IsSolved(island);
    certificate.iterations = std::max<int64_t>(certificate.iterations, island.iterations);
    certificate.bound = std::max(certificate.bound, island.optimality_gap_bound);
  }
  return certificate;
}

tl::expected<int64_t, EngineError> ConstraintStage::Run(const sap_mujoco_field* table,
                                                        const void* model, void* data,
                                                        int32_t flags,
                                                        sap_mujoco_certificate* certificate) {
  const Fields fields = ReadFields(table, model, data);
  const bool is_sparse = (flags & SAP_MUJOCO_SPARSE) != 0;
  const Trees trees(fields);
  if (!(flags & SAP_MUJOCO_ALWAYS)) {
    const sap_mujoco_work work = work_.Count(fields, trees, is_sparse);
    if (!IsSapFaster(fields, trees, work)) return SAP_MUJOCO_SLOWER;
  }
  problem_.BuildChange(fields, trees, is_sparse);
  if (EngineStatus read = task_.Read(ViewOf(fields, problem_.problem())); !read) {
    return tl::unexpected(read.error());
  }
  EngineStatus solved =
      task_.Solve(&solver_, OptionsOf(fields), CallLimits{}, SolveLimits{}, &solution_);
  if (!solved) return tl::unexpected(solved.error());
  if (!std::ranges::all_of(solution_.islands, IsSolved)) {
    if (std::ranges::any_of(solution_.islands, NeedsMoreIterations)) {
      return SAP_MUJOCO_MORE_ITERATIONS;
    }
    return tl::unexpected(EngineError{EngineErrorCode::kInternal, "an island is not solved", ""});
  }
  Store(fields, trees, is_sparse);
  if (certificate != nullptr) AddCounts(certificate, Certify(solution_));
  return static_cast<int64_t>(solution_.islands.size());
}

void ConstraintStage::Store(const Fields& fields, const Trees& trees, bool is_sparse) {
  StoreForces(fields, problem_.problem(), solution_);
  StoreGeneralizedForce(fields, is_sparse);
  for (int64_t i = 0; i < fields.nv; ++i) {
    const bool is_free = solution_.island_of_tree[trees.OfDof(i)] < 0;
    const bool is_smooth = is_free && !IsDiscrete(fields);
    fields.qacc[i] = is_smooth ? fields.qacc_smooth[i] : solution_.velocity[i] / fields.timestep;
  }
  StoreIslandArrays(fields, is_sparse);
  statistics_.Store(fields, trees, solution_, is_sparse);
}

}  // namespace sap::mujoco

int64_t sap_mujoco_solve_constraints(const sap_mujoco_field* fields, const void* model, void* data,
                                     int32_t flags, sap_mujoco_certificate* certificate) {
  // A thread keeps its memory. What an exception leaves is undefined, so that it is made again.
  static thread_local std::unique_ptr<sap::mujoco::ConstraintStage> kept;
  const auto islands = sap::CatchExceptions([&]() -> tl::expected<int64_t, sap::EngineError> {
    auto stage = std::move(kept);
    if (stage == nullptr) stage = std::make_unique<sap::mujoco::ConstraintStage>();
    auto run = stage->Run(fields, model, data, flags, certificate);
    kept = std::move(stage);
    return run;
  });
  return islands.value_or(SAP_MUJOCO_UNSOLVED);
}
