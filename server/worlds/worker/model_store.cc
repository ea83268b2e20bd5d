#include "server/worlds/worker/model_store.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace sap {
namespace {

// MuJoCo's text where malloc had nothing.
bool IsOfMemory(const std::string& text) {
  return text.find("allocate") != std::string::npos || text.find("memory") != std::string::npos;
}

}  // namespace

AddressSpace::AddressSpace() : file_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

int64_t AddressSpace::Read() const {
  char text[128] = {};
  const ssize_t length = file_ < 0 ? 0 : pread(file_, text, sizeof text, 0);
  int64_t pages = 0;
  if (length <= 0 || std::from_chars(text, text + length, pages).ec != std::errc()) return -1;
  return pages * sysconf(_SC_PAGESIZE);
}

ModelStore::Model* ModelStore::Find(const ModelId& id) {
  const auto found =
      std::ranges::find_if(models_, [&](const Entry& entry) { return entry.id == id; });
  if (found == models_.end()) return nullptr;
  models_.splice(models_.begin(), models_, found);
  return found->model.get();
}

void ModelStore::MakeRoom(int64_t block_bytes) {
  while (!models_.empty()) {
    const int64_t bytes = space_.Read();
    if (bytes >= 0 && bytes - block_bytes - empty_bytes_ < kept_bytes_) break;
    models_.pop_back();
    malloc_trim(0);
  }
}

tl::expected<ModelStore::Model*, ModelStore::Error> ModelStore::Load(
    const ModelId& id, std::span<const ModelFile> files, bool is_binary, int64_t block_bytes) {
  if (Model* const known = Find(id)) return known;
  MakeRoom(block_bytes);
  const auto loaded = loader_.Load(files, is_binary);
  if (!loaded) {
    const auto& [text, is_in_call] = loaded.error();
    if (IsOfMemory(text)) return tl::unexpected(Error{WorkerVerdict::kMemory, text, true});
    return tl::unexpected(Error{WorkerVerdict::kRefused, text, is_in_call});
  }
  auto model = std::make_unique<Model>(loader_, *loaded);
  const auto state = model->states.Take(model->address);
  if (!state) return tl::unexpected(Error{WorkerVerdict::kMemory, state.error().message, true});
  model->states.Return(model->address, *state);
  models_.push_front({id, std::move(model)});
  return models_.front().model.get();
}

}  // namespace sap
