#include "server/worlds/worker/model_loader.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client/mujoco/fields.h"

namespace sap {
namespace {

// mjtState, whose first fourteen numbers all versions have.
enum StateBit : int32_t {
  kTime = 1 << 0,
  kPositions = 1 << 1,
  kVelocities = 1 << 2,
  kActivations = 1 << 3,
  kHistory = 1 << 4,
  kWarmstart = 1 << 5,
  kFirstControl = 1 << 6,  // then as the ControlComponents
  kLastControl = 1 << 12,
  kPlugin = 1 << 13,
  kPlastic = 1 << 14,
};
constexpr int kFirstPlastic = 4'000'000;
constexpr int kControlComponents = 7;

constexpr int kFirstLowSleep = 3'008'000;  // before, another flag had its number
constexpr int kPluginType = 25;            // mjOBJ_PLUGIN

// mjVFS is a pointer in every version.
struct Vfs {
  alignas(std::max_align_t) std::array<std::byte, 256> bytes{};
};

// An error outside of the calls that catch it leaves nothing to go on with.
void OnError(const char*) { std::_Exit(EXIT_FAILURE); }

// Warnings are counted in states; without a handler MuJoCo writes them to a file. This is why a
// binary model is refused.
std::array<char, 900> last_warning = {};
void OnWarning(const char* text) {
  std::snprintf(last_warning.data(), last_warning.size(), "%s", text);
}

}  // namespace

StateKinds::StateKinds(int mujoco_version) {
  full_physics = kTime | kPositions | kVelocities | kActivations | kHistory | kPlugin;
  if (mujoco_version >= kFirstPlastic) full_physics |= kPlastic;
  integration = full_physics | kWarmstart | (2 * kLastControl - kFirstControl);
}

int32_t StateKinds::OfControls(uint32_t components) {
  return static_cast<int32_t>(components / 2) * kFirstControl;
}

tl::expected<std::unique_ptr<ModelLoader>, std::string> ModelLoader::Open(
    const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return tl::unexpected(std::string(dlerror()));
  using Handler = void (*)(const char* text);
  for (const auto& [name, handler] : {std::pair<const char*, Handler>{"mju_user_error", &OnError},
                                      {"mju_user_warning", &OnWarning}}) {
    auto* const place = static_cast<Handler*>(dlsym(handle, name));
    if (place == nullptr) return tl::unexpected(library + " is not MuJoCo: it has no " + name);
    *place = handler;
  }
  sap_mujoco* solver = nullptr;
  sap_mujoco_outcome outcome;
  if (sap_mujoco_open(library.c_str(), nullptr, &solver, &outcome) != 0) {
    return tl::unexpected(std::string(outcome.message));
  }
  std::unique_ptr<ModelLoader> loader(new ModelLoader(Solver(solver)));
  const std::string missing = loader->FindFunctions(handle);
  if (!missing.empty()) return tl::unexpected("MuJoCo has no " + missing);
  return loader;
}

std::string ModelLoader::FindFunctions(void* library) {
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    void* const found = dlsym(library, name);
    if (found == nullptr && missing.empty()) missing = name;
    std::memcpy(function, &found, sizeof found);
  };
  find("mj_defaultVFS", &default_vfs_);
  find("mj_addBufferVFS", &add_buffer_);
  find("mj_deleteVFS", &delete_vfs_);
  find("mj_loadXML", &load_xml_);
  find("mj_loadModel", &load_binary_);
  find("mj_deleteModel", &delete_model_);
  find("mj_stateSize", &state_size_);
  find("mj_id2name", &name_of_);
  return missing;
}

// Arguments and result of a guarded call.
struct ModelLoader::Loading {
  const ModelLoader& loader;
  std::span<const ModelFile> files;
  bool is_binary;
  Vfs vfs;
  const char* repeated;  // name of a file that is there already
  void* model;
  std::array<char, 900> error;
};

void ModelLoader::Parse(Loading* loading) {
  Loading& l = *loading;
  l.loader.default_vfs_(&l.vfs);
  for (const ModelFile& file : l.files) {
    const int bytes = static_cast<int>(file.content.size());
    if (l.loader.add_buffer_(&l.vfs, file.name.c_str(), file.content.data(), bytes) != 0) {
      l.repeated = file.name.c_str();
      break;
    }
  }
  const char* root = l.files.front().name.c_str();
  if (l.repeated == nullptr) {
    l.model = l.is_binary ? l.loader.load_binary_(root, &l.vfs)
                          : l.loader.load_xml_(root, &l.vfs, l.error.data(),
                                               static_cast<int>(l.error.size()));
  }
  l.loader.delete_vfs_(&l.vfs);
}

tl::expected<void*, ModelLoader::Refusal> ModelLoader::Load(std::span<const ModelFile> files,
                                                            bool is_binary) const {
  Loading loading = {*this, files, is_binary, {}, nullptr, nullptr, {}};
  last_warning = {};
  if (const EngineStatus run = calls().Run([&] { Parse(&loading); }); !run) {
    return tl::unexpected(Refusal{run.error().message, true});
  }
  if (loading.repeated != nullptr) {
    return tl::unexpected(
        Refusal{std::string("MuJoCo does not take the file ") + loading.repeated});
  }
  if (loading.model == nullptr) {
    const char* text = loading.error[0] != 0 ? loading.error.data() : last_warning.data();
    return tl::unexpected(Refusal{std::string("MuJoCo: ") + text});
  }
  std::string refusal = RefusalOf(loading.model);
  if (refusal.empty()) return loading.model;
  Delete(loading.model);
  return tl::unexpected(Refusal{std::move(refusal)});
}

int64_t ModelLoader::Number(mujoco::row::Row row, const void* model) const {
  return mujoco::ReadInteger(calls().fields[row], model, nullptr);
}

std::string ModelLoader::RefusalOf(const void* model) const {
  if (Number(mujoco::row::nplugin, model) > 0) {
    const char* name = name_of_(model, kPluginType, 0);
    const std::string which = name == nullptr ? "" : " `" + std::string(name) + "`";
    return "the model has the plugin" + which + "; no plugin is loaded here";
  }
  const int64_t sleep = calls().version >= kFirstLowSleep ? 16 : 32;
  if ((Number(mujoco::row::enableflags, model) & sleep) != 0) {
    return "the model enables `sleep`, whose state is not in the state of a world";
  }
  return "";
}

bool ModelLoader::HasIpc(const void* model) const {
  return (Number(mujoco::row::enableflags, model) & calls().ipc) != 0;
}

ModelSizes ModelLoader::SizesOf(const void* model) const {
  const auto number = [&](mujoco::row::Row row) {
    return static_cast<int32_t>(Number(row, model));
  };
  ModelSizes sizes = {};
  sizes.nq = number(mujoco::row::nq);
  sizes.nv = number(mujoco::row::nv);
  sizes.nsensordata = number(mujoco::row::nsensordata);
  sizes.na = state_size_(model, kActivations);
  sizes.full_physics = state_size_(model, kinds_.full_physics);
  sizes.integration = state_size_(model, kinds_.integration);
  for (int i = 1; i <= kControlComponents; ++i) {
    sizes.control[i] = state_size_(model, StateKinds::OfControls(uint32_t{1} << i));
  }
  sizes.nu = sizes.control[1];
  sizes.nbody = sizes.control[3] / 6;
  sizes.neq = sizes.control[4];
  sizes.nmocap = sizes.control[5] / 3;
  sizes.nuserdata = sizes.control[7];
  return sizes;
}

}  // namespace sap
