#include "client/mujoco/replaced_step.h"

#include <dlfcn.h>

#include <filesystem>

#include "client/mujoco/preload/replacement.h"

namespace sap::mujoco {
namespace {

constexpr const char* kLibrary = "libsap_islands_mujoco.so";

using Use = decltype(&sap_replacement_use);

// Folders in which packages have it, from that of this library or program.
constexpr const char* kDebianFolder = "../lib/" SAP_LIBRARY_ARCHITECTURE "/sap_islands";
constexpr const char* kFolders[] = {".", "sap_islands", "../lib", "../lib/sap_islands",
                                    kDebianFolder};

void* OpenLibrary() {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&RunReplaced), &own) != 0) {
    const auto folder = std::filesystem::path(own.dli_fname).parent_path();
    for (const char* each : kFolders) {
      const auto path = folder / each / kLibrary;
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
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

// From now on steps of this thread are solved here, and added to the certificate.
EngineStatus BeginUse(Use use, sap_mujoco_certificate* certificate) {
  if (use == nullptr) return tl::unexpected(Unavailable(" of this version was not found"));
  if (use(&sap_mujoco_solve_constraints, certificate) == 0) return {};
  return tl::unexpected(Unavailable(" cannot write to the memory of MuJoCo"));
}

Use FoundUse() {
  static const Use use = FindUse();
  return use;
}

}  // namespace

EngineStatus PrepareReplacement() {
  sap_mujoco_certificate certificate = {};
  EngineStatus begun = BeginUse(FoundUse(), &certificate);
  if (begun) FoundUse()(nullptr, nullptr);
  return begun;
}

tl::expected<sap_mujoco_certificate, EngineError> RunReplaced(const MujocoCalls& calls,
                                                              MujocoCalls::Stage function,
                                                              const void* model, void* data) {
  sap_mujoco_certificate certificate = {};
  const EngineStatus begun = BeginUse(FoundUse(), &certificate);
  if (!begun) return tl::unexpected(begun.error());
  const EngineStatus run = calls.Run([&] { function(model, data); });
  FoundUse()(nullptr, nullptr);
  if (!run) return tl::unexpected(run.error());
  return certificate;
}

}  // namespace sap::mujoco
