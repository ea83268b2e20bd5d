// Steps of unmodified programs, for preload.cc: solved, counted, or left to DART's own function.
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

#include "client/dart/replacement.h"
#include "client/dart/step_solver.h"

namespace sap_islands::dart {
namespace {

using ::dart::constraint::BoxedLcpConstraintSolver;
using ::dart::constraint::ConstrainedGroup;

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

// Opens what the solver of a program keeps protected.
struct Opened : BoxedLcpConstraintSolver {
  static bool IsFirst(const BoxedLcpConstraintSolver& solver, const ConstrainedGroup& group) {
    return &group == &(solver.*&Opened::mConstrainedGroups).front();
  }
  static Constraints Of(const BoxedLcpConstraintSolver& solver) {
    return {solver.*&Opened::mTimeStep,
            solver.*&Opened::mSkeletons,
            solver.*&Opened::mCollisionResult,
            solver.*&Opened::mContactConstraints,
            solver.*&Opened::mSoftContactConstraints,
            solver.*&Opened::mManualConstraints};
  }
};

}  // namespace

// A step depends on nothing that was solved before, so all worlds of a thread share a solver.
extern "C" [[gnu::visibility("default")]] void sap_dart_solve_in_place_of(SolveGroup own,
                                                                          void* solver,
                                                                          void* group) {
  thread_local StepSolver step = MakeStepSolver();
  thread_local bool step_is_solved = false;
  const auto& boxed = *static_cast<BoxedLcpConstraintSolver*>(solver);
  if (Opened::IsFirst(boxed, *static_cast<ConstrainedGroup*>(group))) {
    step_is_solved = step.Solve(Opened::Of(boxed), false);
    totals.Add(step);
  }
  if (!step_is_solved) own(solver, group);
}

}  // namespace sap_islands::dart
