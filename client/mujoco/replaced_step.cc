#include "client/mujoco/replaced_step.h"

#include <dlfcn.h>

#include <filesystem>

#include "client/mujoco/preload/replacement.h"

namespace sap::mujoco {
namespace {

constexpr const char* kLibrary = "libsap_islands_mujoco.so";

using Use = decltype(&sap_replacement_use);

void* OpenLibrary() {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&RunReplaced), &own) != 0) {
    const auto beside = std::filesystem::path(own.dli_fname).parent_path() / kLibrary;
    if (void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

Use FindUse() {
  void* const library = OpenLibrary();
  if (library == nullptr) return nullptr;
  return reinterpret_cast<Use>(dlsym(library, "sap_replacement_use"));
}

EngineError Unavailable(const char* why) {
  return {EngineErrorCode::kFailedPrecondition, std::string(kLibrary) + why, ""};
}

}  // namespace

tl::expected<sap_mujoco_certificate, EngineError> RunReplaced(const MujocoCalls& calls,
                                                              MujocoCalls::Stage function,
                                                              const void* model, void* data) {
  static const Use use = FindUse();
  if (use == nullptr) return tl::unexpected(Unavailable(" of this version was not found"));
  sap_mujoco_certificate certificate = {};
  if (use(&sap_mujoco_solve_constraints, &certificate) != 0) {
    return tl::unexpected(Unavailable(" cannot write to the memory of MuJoCo"));
  }
  const EngineStatus run = calls.Run([&] { function(model, data); });
  use(nullptr, nullptr);
  if (!run) return tl::unexpected(run.error());
  return certificate;
}

}  // namespace sap::mujoco
