// The interface between the preloaded library (preload.cc) and libsap_islands_dart, which it loads.
// Objects of DART are pointers without a type here: the preloaded library knows no DART.
#pragma once

namespace sap_islands::dart {

// BoxedLcpConstraintSolver::solveConstrainedGroup, of which preload.cc takes the place.
using SolveGroup = void (*)(void* solver, void* group);

// sap_dart_solve_in_place_of, which libsap_islands_dart exports: solves a group in place of
// DART's own function, which takes it where the step cannot be solved.
using SolveInPlaceOf = void (*)(SolveGroup own, void* solver, void* group);

// Outcomes of steps, in the order of Outcome.
constexpr const char* kOutcomes[] = {
    "solved",
    "soft bodies",
    "a constraint of the program bounds impulses by others",
    "the solver refused the step, or its server was lost",
    "an island was not solved to the tolerance",
};
constexpr int kNumOutcomes = sizeof kOutcomes / sizeof *kOutcomes;

}  // namespace sap_islands::dart
