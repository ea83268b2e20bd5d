#include "client/mujoco/preload/solver_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace sap::mujoco {
namespace {

constexpr const char* kName = "libsap_islands.so";
constexpr const char* kSystemName = "libsap_islands.so.0";

constinit SolveConstraints solve = nullptr;
constinit pthread_once_t load_once = PTHREAD_ONCE_INIT;

void* OpenBeside() {
  Dl_info own;
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&OpenBeside), &own) == 0) return nullptr;
  const char* slash = strrchr(own.dli_fname, '/');
  if (slash == nullptr) return nullptr;
  const int folder = static_cast<int>(slash - own.dli_fname);
  const int length = snprintf(path, sizeof path, "%.*s/%s", folder, own.dli_fname, kName);
  if (length < 0 || length >= static_cast<int>(sizeof path)) return nullptr;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void* Open() {
  const char* chosen = getenv("SAP_LIBRARY");
  if (chosen != nullptr && *chosen != '\0') return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  void* beside = OpenBeside();
  return beside != nullptr ? beside : dlopen(kSystemName, RTLD_NOW | RTLD_LOCAL);
}

void Load() {
  void* library = Open();
  if (library == nullptr) return;
  // Both libraries have to know the same fields.
  using Names = const char* (*)();
  const auto names = reinterpret_cast<Names>(dlsym(library, "sap_mujoco_fields"));
  if (names == nullptr || strcmp(names(), sap_mujoco_fields()) != 0) return;
  solve = reinterpret_cast<SolveConstraints>(dlsym(library, "sap_mujoco_solve_constraints"));
}

}  // namespace

SolveConstraints LoadSolver() {
  pthread_once(&load_once, &Load);
  return solve;
}

}  // namespace sap::mujoco
