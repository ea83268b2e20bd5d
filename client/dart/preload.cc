// For LD_PRELOAD, as `sap-islands run --engine dart` does it: SAP in place of the constraint
// solver of an unmodified program of DART, as of dartpy or of gz-physics' dartsim plugin. DART's
// default solver is BoxedLcpConstraintSolver::solveConstrainedGroup, and the dynamic linker finds
// this definition before DART's own.
//
// Not linked with DART: what is preloaded comes before all else, so that a program with another
// DART, as PyPI's dartpy has it within its module, would get the functions of this one for its own
// objects. libsap_islands_dart, which is linked with it, is loaded at the first step, if the
// program has loaded the DART that it is for.
//
// Environment, as client/mujoco/preload/replacement.h has it:
//
//   SAP_ISLANDS_ADDRESS   where to solve, default "embedded:"
//   SAP_RUN_REPORT        a file to count in. Without it a line on the standard error says at the
//                         end of the process how many steps were solved
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "client/dart/replacement.h"

// void dart::constraint::BoxedLcpConstraintSolver::solveConstrainedGroup(ConstrainedGroup&)
#define SAP_REPLACED_FUNCTION                                                     \
  "_ZN4dart10constraint24BoxedLcpConstraintSolver21solveConstrainedGroupERNS0_16" \
  "ConstrainedGroupE"

namespace sap_islands::dart {
namespace {

// Going on with DART's solver would pass its results off as ours.
[[noreturn]] void End(const std::string& message) {
  std::fprintf(stderr, "sap-islands: %s\n", message.c_str());
  std::_Exit(1);
}

struct Functions {
  SolveGroup own;
  SolveInPlaceOf replaced;
};

// `caller` is an address in the DART of the program.
Functions Load(const void* caller) {
  void* dart = dlopen(SAP_DART_SONAME, RTLD_NOLOAD | RTLD_LAZY);
  if (dart == nullptr) {
    Dl_info place{};
    dladdr(caller, &place);
    End(std::string(place.dli_fname == nullptr ? "the program" : place.dli_fname) +
        " has a DART of its own, not " SAP_DART_SONAME ", whose solver can be replaced");
  }
  void* library = dlopen("libsap_islands_dart.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) End(dlerror());
  const Functions functions{
      reinterpret_cast<SolveGroup>(dlsym(dart, SAP_REPLACED_FUNCTION)),
      reinterpret_cast<SolveInPlaceOf>(dlsym(library, "sap_dart_solve_in_place_of"))};
  if (functions.own == nullptr || functions.replaced == nullptr) End(dlerror());
  return functions;
}

}  // namespace
}  // namespace sap_islands::dart

extern "C" {

[[gnu::visibility("default")]] void SolveConstrainedGroup(void* solver, void* group) __asm__(
    SAP_REPLACED_FUNCTION);

void SolveConstrainedGroup(void* solver, void* group) {
  static const sap_islands::dart::Functions functions =
      sap_islands::dart::Load(__builtin_return_address(0));
  functions.replaced(functions.own, solver, group);
}

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
