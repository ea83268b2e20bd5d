// For LD_PRELOAD: SAP in the place of the constraint solver of an unmodified program of DART, as of
// dartpy or of gz-physics' dartsim plugin. DART's default solver is
// BoxedLcpConstraintSolver::solveConstrainedGroup, and the dynamic linker finds this definition
// before DART's own.
//
// SAP_ISLANDS_ADDRESS names the address, default "embedded:". At the end of the process a line on
// the standard error says how many steps were solved.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <dart/constraint/BoxedLcpConstraintSolver.hpp>
#include <mutex>
#include <stdexcept>

#include "client/dart/step_solver.h"

namespace sap_islands::dart {
namespace {

using ::dart::constraint::BoxedLcpConstraintSolver;
using ::dart::constraint::ConstrainedGroup;

// Counts of the process, printed at its end.
class Totals {
 public:
  ~Totals() {
    if (steps_ == 0) return;
    std::fprintf(stderr, "sap-islands: %ld steps of DART, %ld islands not solved to the tolerance",
                 steps_, unsolved_);
    if (left_ > 0) std::fprintf(stderr, "; %ld left to DART: %s", left_, message_.c_str());
    std::fputc('\n', stderr);
  }
  void Add(const Report& report) {
    const std::lock_guard lock(mutex_);
    ++steps_;
    if (report.solved) return;
    ++(report.message.empty() ? unsolved_ : left_);
    if (!report.message.empty()) message_ = report.message;
  }

 private:
  std::mutex mutex_;
  long steps_ = 0, unsolved_ = 0, left_ = 0;
  std::string message_;  // of the last step that was left to DART
};

Totals totals;

StepSolver MakeStepSolver() {
  Options options;
  if (const char* address = std::getenv("SAP_ISLANDS_ADDRESS")) options.address = address;
  try {
    return StepSolver(options);
  } catch (const std::runtime_error& error) {
    // Going on with DART's solver would pass its results off as ours.
    std::fprintf(stderr, "sap-islands: %s\n", error.what());
    std::_Exit(1);
  }
}

// DART's own, which this file hides.
void SolveByDart(BoxedLcpConstraintSolver* solver, ConstrainedGroup& group) {
  using Function = void (*)(BoxedLcpConstraintSolver*, ConstrainedGroup&);
  static const auto own = reinterpret_cast<Function>(
      dlsym(RTLD_NEXT,
            "_ZN4dart10constraint24BoxedLcpConstraintSolver21solveConstrainedGroupERNS0_16"
            "ConstrainedGroupE"));
  own(solver, group);
}

}  // namespace
}  // namespace sap_islands::dart

namespace dart::constraint {

// A step depends on nothing that was solved before, so all worlds of a thread share a solver.
[[gnu::visibility("default")]] void BoxedLcpConstraintSolver::solveConstrainedGroup(
    ConstrainedGroup& group) {
  thread_local sap_islands::dart::StepSolver step = sap_islands::dart::MakeStepSolver();
  thread_local bool step_is_solved = false;
  if (&group == &mConstrainedGroups.front()) {
    step_is_solved = step.Solve({mTimeStep, mSkeletons, mCollisionResult, mContactConstraints,
                                 mSoftContactConstraints, mManualConstraints});
    sap_islands::dart::totals.Add(step.report());
  }
  if (!step_is_solved) sap_islands::dart::SolveByDart(this, group);
}

}  // namespace dart::constraint
