#include "client/mujoco/state_pool.h"

namespace sap::mujoco {
StatePool::~StatePool() {
  for (const auto& [model, states] : free_) {
    for (void* data : states) calls_.delete_data(data);
  }
}

tl::expected<void*, EngineError> StatePool::Take(const void* model) {
  void* data = TakeFree(model);
  const bool is_new = data == nullptr;
  EngineStatus run = is_new ? calls_.Run([&] { data = calls_.make_data(model); })
                            : calls_.Run([&] { calls_.reset_data(model, data); });
  if (!run) {
    if (!is_new) Return(model, data);
    return tl::unexpected(run.error());
  }
  if (data == nullptr) {
    return tl::unexpected(
        EngineError{EngineErrorCode::kResourceExhausted, "MuJoCo made no state", ""});
  }
  return data;
}

void StatePool::Return(const void* model, void* data) {
  const std::scoped_lock lock(mutex_);
  free_[model].push_back(data);
}

void* StatePool::TakeFree(const void* model) {
  const std::scoped_lock lock(mutex_);
  std::vector<void*>& states = free_[model];
  if (states.empty()) return nullptr;
  void* const data = states.back();
  states.pop_back();
  return data;
}

}  // namespace sap::mujoco
