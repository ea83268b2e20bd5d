#include "client/mujoco/preload/mujoco_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mujoco/released_versions.h"

namespace sap::mujoco {
namespace {

constexpr int kFirstHiddenStage = 3'014'000;
constexpr int kFirstAfter = 4'000'000;

constinit MujocoLibrary loaded{};
constinit pthread_once_t found = PTHREAD_ONCE_INIT;

int FindByName(dl_phdr_info* object, size_t, void* name) {
  if (strstr(object->dlpi_name, "libmujoco.so") == nullptr) return 0;
  *static_cast<const char**>(name) = object->dlpi_name;
  return 1;
}

// Python loads MuJoCo with RTLD_LOCAL, where RTLD_NEXT does not find it.
void* Handle() {
  const char* name = nullptr;
  dl_iterate_phdr(&FindByName, &name);
  return name == nullptr ? nullptr : dlopen(name, RTLD_NOLOAD | RTLD_NOW);
}

void* Find(void* handle, const char* name) {
  void* function = handle != nullptr ? dlsym(handle, name) : dlsym(RTLD_NEXT, name);
  if (function == nullptr) {
    fprintf(stderr, "sap-islands: MuJoCo's %s was called, and no libmujoco.so has it\n", name);
    abort();
  }
  return function;
}

template <typename Function>
void Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(Find(handle, name));
}

void FindMujoco() {
  void* handle = Handle();
  int (*version)();
  Find(handle, "mj_version", &version);
  Find(handle, "mj_fwdConstraint", &loaded.fwd_constraint);
  Find(handle, "mj_fwdAcceleration", &loaded.fwd_acceleration);
  Find(handle, "mj_sensorAcc", &loaded.sensor_acc);
  Find(handle, "mj_forwardSkip", &loaded.forward_skip);
  Find(handle, "mj_isSparse", &loaded.is_sparse);
  Find(handle, "mjcb_time", &loaded.time_callback);
  loaded.version = version();
  loaded.has_hidden_stage = loaded.version >= kFirstHiddenStage && loaded.version < kFirstAfter;
  loaded.fields = FieldsOfVersion(loaded.version);
  Dl_info place;
  void* symbol = nullptr;
  const void* step_2 = Find(handle, "mj_step2");
  if (dladdr1(step_2, &place, &symbol, RTLD_DL_SYMENT) != 0 && symbol != nullptr) {
    loaded.step_2 = static_cast<const std::byte*>(step_2);
    loaded.step_2_bytes = static_cast<const ElfW(Sym)*>(symbol)->st_size;
  }
}

}  // namespace

const MujocoLibrary& LoadedMujoco() {
  pthread_once(&found, &FindMujoco);
  return loaded;
}

bool IsMujocoLoaded() { return Handle() != nullptr; }

}  // namespace sap::mujoco
