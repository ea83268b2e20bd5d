// MuJoCo's library, opened by its path, and models of it from memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "client/mujoco/fields.h"
#include "client/mujoco/sap_mujoco.h"
#include "client/mujoco/sap_mujoco_handle.h"
#include "server/worlds/world_slice.h"

namespace sap {

struct ModelFile {
  std::string name;
  std::span<const char> content;
};

// The state of a world, by the numbers of mjtState that the version has.
struct StateKinds {
  int32_t full_physics;
  int32_t integration;

  explicit StateKinds(int mujoco_version);
  // Kind of control components, of which each is 1 << its number.
  static int32_t OfControls(uint32_t components);
};

class ModelLoader {
 public:
  // Opens the library, and takes its errors and warnings from then on.
  static tl::expected<std::unique_ptr<ModelLoader>, std::string> Open(const std::string& library);

  const sap_mujoco* solver() const { return solver_.get(); }
  const mujoco::MujocoCalls& calls() const { return solver_->calls; }
  const StateKinds& kinds() const { return kinds_; }

  struct Refusal {
    std::string text;  // MuJoCo's, or what the model has that is not stepped here
    // MuJoCo was left in the middle of a call, so that no other one should follow.
    bool is_in_call{false};
  };
  tl::expected<void*, Refusal> Load(std::span<const ModelFile> files, bool is_binary) const;
  void Delete(void* model) const { delete_model_(model); }

  ModelSizes SizesOf(const void* model) const;
  // Whether MuJoCo's IPC is enabled, whose contacts only MuJoCo's own step has.
  bool HasIpc(const void* model) const;

 private:
  struct Loading;
  struct Close {
    void operator()(sap_mujoco* solver) const { sap_mujoco_close(solver); }
  };
  using Solver = std::unique_ptr<sap_mujoco, Close>;

  explicit ModelLoader(Solver solver)
      : solver_(std::move(solver)), kinds_(solver_->calls.version) {}
  // The name of the first function that is missing; empty: none is.
  std::string FindFunctions(void* library);
  static void Parse(Loading* loading);
  // Empty: the model has nothing that is not stepped here.
  std::string RefusalOf(const void* model) const;
  int64_t Number(mujoco::row::Row row, const void* model) const;

  Solver solver_;
  StateKinds kinds_;
  void (*default_vfs_)(void* vfs) = nullptr;
  int (*add_buffer_)(void* vfs, const char* name, const void* buffer, int bytes) = nullptr;
  void (*delete_vfs_)(void* vfs) = nullptr;
  void* (*load_xml_)(const char* name, const void* vfs, char* error, int error_bytes) = nullptr;
  void* (*load_binary_)(const char* name, const void* vfs) = nullptr;
  void (*delete_model_)(void* model) = nullptr;
  int (*state_size_)(const void* model, int kind) = nullptr;
  const char* (*name_of_)(const void* model, int type, int number) = nullptr;
};

}  // namespace sap
