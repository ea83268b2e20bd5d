#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "client/mujoco/fields.h"

namespace sap::mujoco {

// A copy of the struct mjModel, with other options. It shares the arrays of the model, which
// MuJoCo's functions only read.
class ModelCopy {
 public:
  ModelCopy(const sap_mujoco_field* table, const void* model)
      : table_(table), bytes_(static_cast<size_t>(table[row::bytes_of_mjModel].size)) {
    std::memcpy(bytes_.data(), model, bytes_.size());
  }

  template <typename Value>
  void Set(row::Row option, Value value) {
    std::memcpy(bytes_.data() + table_[option].offset, &value, sizeof value);
  }

  void Disable(int flag) { SetFlags(Flags() | flag); }
  void Enable(int flag) { SetFlags(Flags() & ~flag); }

  const void* get() const { return bytes_.data(); }

 private:
  int32_t Flags() const {
    return static_cast<int32_t>(ReadInteger(table_[row::disableflags], get(), nullptr));
  }
  void SetFlags(int32_t flags) { Set(row::disableflags, flags); }

  const sap_mujoco_field* table_;
  std::vector<std::byte> bytes_;
};

}  // namespace sap::mujoco
