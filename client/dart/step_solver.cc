#include "client/dart/step_solver.h"

#include <algorithm>
#include <dart/constraint/ConstraintBase.hpp>
#include <dart/dynamics/DegreeOfFreedom.hpp>
#include <stdexcept>

namespace sap_islands::dart {
namespace {

// Solves of one step, for the targets of contacts that slide.
constexpr int kMaxSolves = 10;

}  // namespace

StepSolver::StepSolver(const Options& options)
    : options_(options),
      library_(CLibrary::For(options.address)),
      answer_(library_.answer_new(), library_.answer_free),
      client_(nullptr, library_.client_free),
      session_(nullptr, library_.session_free) {
  sap_connect_options connect{};
  connect.struct_size = sizeof connect;
  if (options.address == "embedded:") connect.threads = options.threads;
  sap_client* client = nullptr;
  sap_session* session = nullptr;
  if (answer_ == nullptr || library_.connect(options.address.c_str(), &connect, nullptr, &client,
                                             answer_.get()) != SAP_OK) {
    throw std::runtime_error(answer_ == nullptr ? "out of memory"
                                                : library_.answer_error(answer_.get())->message);
  }
  client_.reset(client);
  if (library_.session_open(client, nullptr, nullptr, &session, answer_.get()) != SAP_OK) {
    throw std::runtime_error(library_.answer_error(answer_.get())->message);
  }
  session_.reset(session);
}

bool StepSolver::Fail(Outcome outcome, const std::string& message) {
  outcome_ = outcome;
  report_.solved = false;
  report_.message = message;
  return false;
}

bool StepSolver::Solve(const Constraints& constraints, bool take_unsolved) {
  report_ = Report();
  outcome_ = Outcome::kSolved;
  if (Assemble(constraints) && SolveProblem(constraints.time_step) &&
      (report_.solved || take_unsolved ||
       Fail(Outcome::kUnsolved, "an island was not solved to the tolerance"))) {
    Apply();
    return true;
  }
  // Some constraints scale their error when they are read, so that DART's solver needs it again.
  for (const auto& constraint : constraints.manual) constraint->update();
  return false;
}

bool StepSolver::Assemble(const Constraints& constraints) {
  if (!constraints.soft_contacts.empty())
    return Fail(Outcome::kSoftBodies, "contacts of soft bodies");
  trees_.Clear(constraints.time_step);
  rows_.Clear();
  contacts_.Read(constraints, options_, &trees_);
  for (const auto& constraint : constraints.manual) {
    if (constraint->isActive() && !rows_.AddConstraint(constraints, constraint.get(), &trees_)) {
      return Fail(Outcome::kCoupledBounds,
                  "a constraint of ConstraintSolver::addConstraint bounds impulses by others");
    }
  }
  AddJointRows(constraints, options_, &trees_, &rows_);
  for (const SkeletonTrees& trees : trees_.skeletons()) {
    if (trees.skeleton->getNumSoftBodyNodes() > 0) {
      return Fail(Outcome::kSoftBodies,
                  "skeleton " + trees.skeleton->getName() + " has soft bodies");
    }
  }
  report_.contacts = contacts_.size();
  report_.rows = rows_.size();
  return true;
}

bool StepSolver::Call(double time_step, bool estimates_alone) {
  const sap_trees trees = trees_.trees();
  const sap_rows rows = rows_.rows();
  const sap_contact_laws laws = contacts_.laws();
  const sap_contacts contacts = contacts_.contacts(&laws);
  sap_regularization regularization{};
  regularization.struct_size = sizeof regularization;
  regularization.beta = &options_.beta;
  regularization.row_beta = &options_.row_beta;
  regularization.sigma = &options_.slip_parameter;
  regularization.rule = options_.rule == RegularizationRule::kFull || contacts_.HasSlipTrees()
                            ? SAP_REGULARIZATION_RULE_FULL
                            : SAP_REGULARIZATION_RULE_LOAD_PATH;
  sap_problem problem{};
  problem.struct_size = sizeof problem;
  problem.time_step = time_step;
  problem.trees = &trees;
  problem.contacts = &contacts;
  problem.rows = &rows;
  problem.regularization = &regularization;
  sap_options options{};
  options.struct_size = sizeof options;
  if (options_.time_budget_s > 0) options.time_budget_s = &options_.time_budget_s;
  const uint32_t no_iterations = 0;
  if (estimates_alone) options.max_iterations = &no_iterations;
  const int32_t kind =
      estimates_alone
          ? library_.solve(client_.get(), &problem, &options, nullptr, answer_.get())
          : library_.session_step(session_.get(), &problem, &options, nullptr, answer_.get());
  return kind == SAP_OK || Fail(Outcome::kRefused, library_.answer_error(answer_.get())->message);
}

bool StepSolver::SolveProblem(double time_step) {
  contacts_.ShiftTargets(trees_, trees_.v_0());
  if (contacts_.NeedsRegularization()) {
    if (!Call(time_step, true)) return false;
    contacts_.Regularize(options_.beta, options_.slip_parameter,
                         library_.answer_solution(answer_.get())->delassus_estimate.data, &trees_);
  }
  report_.settled = false;
  while (!report_.settled && report_.solves < kMaxSolves) {
    if (!Call(time_step, false)) return false;
    ++report_.solves;
    const sap_solution& solution = *library_.answer_solution(answer_.get());
    Count(*solution.islands);
    if (!report_.solved) break;
    trees_.SetGuess(solution.velocity);
    report_.settled = !contacts_.ShiftTargets(solution, options_.slip_parameter);
  }
  return true;
}

void StepSolver::Count(const sap_island_reports& islands) {
  report_.islands = static_cast<int>(islands.status.length);
  int most = 0;
  for (int64_t i = 0; i < islands.status.length; ++i) {
    most = std::max(most, static_cast<int>(islands.iterations.data[i]));
    report_.solved = report_.solved && (islands.status.data[i] == SAP_ISLAND_CONVERGED ||
                                        islands.status.data[i] == SAP_ISLAND_STALLED_AT_ROUNDOFF);
  }
  report_.iterations += most;
}

void StepSolver::Apply() {
  const sap_solution& solution = *library_.answer_solution(answer_.get());
  // Impulses of implicit dampers and springs as v* becomes v: DART responds to an impulse by M
  // only.
  std::vector<double> joint_impulse(trees_.num_velocities());
  for (int i = 0; i < trees_.num_velocities(); ++i) {
    joint_impulse[i] = -trees_.implicit_force(i) * (solution.velocity.data[i] - trees_.v_star(i));
  }
  contacts_.Apply(solution.impulse.data);
  rows_.Apply(solution.row_impulse.data, joint_impulse.data());
  for (const SkeletonTrees& trees : trees_.skeletons()) {
    for (::dart::dynamics::DegreeOfFreedom* dof : trees.skeleton->getDofs()) {
      const int velocity = trees.velocity[dof->getIndexInSkeleton()];
      if (velocity < 0) continue;
      dof->setConstraintImpulse(dof->getConstraintImpulse() + joint_impulse[velocity]);
    }
    trees.skeleton->setImpulseApplied(true);
  }
}

}  // namespace sap_islands::dart
