// The models that a worker has loaded, and the memory that they take.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "client/mujoco/state_pool.h"
#include "server/worlds/worker/model_loader.h"
#include "server/worlds/worker_block.h"

namespace sap {

// Address space of this process.
class AddressSpace {
 public:
  // Opens the file that tells it, which is not possible later.
  AddressSpace();
  // -1: the system does not tell it.
  int64_t Read() const;

 private:
  int file_;
};

using ModelId = std::array<uint8_t, 32>;

class ModelStore {
 public:
  struct Model {
    Model(const ModelLoader& from, void* loaded)
        : loader(from), address(loaded), states(from.calls()), sizes(from.SizesOf(loaded)) {}
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model() { loader.Delete(address); }

    const ModelLoader& loader;
    void* address;
    mujoco::StatePool states;  // destroyed before the model
    ModelSizes sizes;
  };

  // Before a model is loaded, others are dropped, the least recently used one first, until they
  // take less than a sixteenth of the memory that one may take.
  ModelStore(const ModelLoader& loader, int64_t max_bytes)
      : loader_(loader), kept_bytes_(max_bytes / 16), empty_bytes_(space_.Read()) {}

  // Null: it is not loaded.
  Model* Find(const ModelId& id);

  // With a state of it. An error: kRefused or kMemory, and its text.
  struct Error {
    WorkerVerdict verdict;
    std::string text;
    bool is_last;  // no other call of MuJoCo's should follow
  };
  tl::expected<Model*, Error> Load(const ModelId& id, std::span<const ModelFile> files,
                                   bool is_binary, int64_t block_bytes);

  int64_t empty_bytes() const { return empty_bytes_; }

 private:
  struct Entry {
    ModelId id;
    std::unique_ptr<Model> model;
  };

  void MakeRoom(int64_t block_bytes);

  const ModelLoader& loader_;
  const AddressSpace space_;
  const int64_t kept_bytes_;
  const int64_t empty_bytes_;
  std::list<Entry> models_;  // the most recently used one first
};

}  // namespace sap
