#include "client/mujoco/state_pool.h"

namespace sap::mujoco {
namespace {

// Arguments of guarded calls of MuJoCo.
struct Making {
  const MujocoCalls& calls;
  const void* model;
  void* data;
};

void Make(void* context) {
  auto& making = *static_cast<Making*>(context);
  making.data = making.calls.make_data(making.model);
}

void Reset(void* context) {
  const auto& making = *static_cast<Making*>(context);
  making.calls.reset_data(making.model, making.data);
}

}  // namespace

StatePool::~StatePool() {
  for (const auto& [model, states] : free_) {
    for (void* data : states) calls_.delete_data(data);
  }
}

tl::expected<void*, EngineError> StatePool::Take(const void* model) {
  Making making = {calls_, model, TakeFree(model)};
  const bool is_new = making.data == nullptr;
  if (EngineStatus run = calls_.Run(is_new ? &Make : &Reset, &making); !run) {
    if (!is_new) Return(model, making.data);
    return tl::unexpected(run.error());
  }
  if (making.data == nullptr) {
    return tl::unexpected(
        EngineError{EngineErrorCode::kResourceExhausted, "MuJoCo made no state", ""});
  }
  return making.data;
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
