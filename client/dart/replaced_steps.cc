// For LD_PRELOAD, as `sap-islands run --engine dart` does it: SAP in the place of the constraint
// solver of an unmodified program of DART, as of dartpy or of gz-physics' dartsim plugin. DART's
// default solver is BoxedLcpConstraintSolver::solveConstrainedGroup, and the dynamic linker finds
// this definition before DART's own.
//
// Environment, as client/mujoco/preload/replacement.h has it:
//
//   SAP_ISLANDS_ADDRESS   where to solve, default "embedded:"
//   SAP_RUN_REPORT        a file to count in. Without it a line on the standard error says at the
//                         end of the process how many steps were solved
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dart/config.hpp>
#include <dart/constraint/BoxedLcpConstraintSolver.hpp>
#include <stdexcept>

#include "client/dart/step_solver.h"

namespace sap_islands::dart {
namespace {

using ::dart::constraint::BoxedLcpConstraintSolver;
using ::dart::constraint::ConstrainedGroup;

// In the order of Outcome.
constexpr const char* kOutcomes[] = {
    "solved",
    "soft bodies",
    "a constraint of the program bounds impulses by others",
    "the solver refused the step, or its server was lost",
    "an island was not solved to the tolerance",
};
constexpr int kNumOutcomes = sizeof kOutcomes / sizeof *kOutcomes;

// As in the file of the report, which begins with zeros.
struct Counts {
  std::atomic<int64_t> version, islands, steps[kNumOutcomes], said[kNumOutcomes];
};

// Counts of the process, or of all processes that share the file.
class Totals {
 public:
  Totals() {
    const char* path = std::getenv("SAP_RUN_REPORT");
    const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    if (lseek(file, 0, SEEK_END) == static_cast<off_t>(sizeof(Counts))) {
      void* shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (shared != MAP_FAILED) counts_ = static_cast<Counts*>(shared);
    }
    close(file);
  }
  ~Totals() {
    if (counts_ != &own_ || own_.version == 0) return;
    std::fprintf(stderr, "sap-islands: %ld steps of DART solved\n", Number(own_.steps[0]));
    for (int i = 1; i < kNumOutcomes; ++i) {
      if (own_.steps[i] == 0) continue;
      std::fprintf(stderr, "sap-islands: %ld steps left to DART: %s\n", Number(own_.steps[i]),
                   kOutcomes[i]);
    }
  }
  void Add(const StepSolver& step) {
    const int outcome = static_cast<int>(step.outcome());
    counts_->version =
        DART_MAJOR_VERSION * 1'000'000 + DART_MINOR_VERSION * 1000 + DART_PATCH_VERSION;
    ++counts_->steps[outcome];
    if (outcome == 0) counts_->islands += step.report().islands;
    if (outcome > 0 && counts_->said[outcome]++ == 0) {
      std::fprintf(stderr, "sap-islands: steps are left to DART's solver: %s\n",
                   step.report().message.c_str());
    }
  }

 private:
  static long Number(const std::atomic<int64_t>& count) { return static_cast<long>(count); }

  Counts own_{};
  Counts* counts_ = &own_;
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
                                 mSoftContactConstraints, mManualConstraints},
                                false);
    sap_islands::dart::totals.Add(step);
  }
  if (!step_is_solved) sap_islands::dart::SolveByDart(this, group);
}

}  // namespace dart::constraint

extern "C" {

// For the Python package: the outcomes of steps, one per line.
[[gnu::visibility("default")]] const char* sap_replacement_outcomes() {
  static const std::string outcomes = [] {
    std::string lines;
    for (const char* outcome : sap_islands::dart::kOutcomes) lines += std::string(outcome) + "\n";
    return lines;
  }();
  return outcomes.c_str();
}

// A process that has loaded DART keeps its solver.
[[gnu::visibility("default")]] int32_t sap_replacement_start(const char*, const char*) {
  return -1;
}
}
