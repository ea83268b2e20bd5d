#include "solver/run/factor_stores.h"

#include <cassert>

namespace sap {

FactorPairBytes FactorPairBytes::Of(const EliminationPlan& plan, bool preconditioned,
                                    const TaskArena* arena) {
  const size_t exact = BlockCholesky<double>::StorageBytes(plan, arena);
  if (!preconditioned) return {.exact = exact};
  return {.single = BlockCholesky<float>::StorageBytes(plan, arena), .fallback = exact};
}

void FactorPairBytes::RaiseTo(const FactorPairBytes& other) {
  single = std::max(single, other.single);
  exact = std::max(exact, other.exact);
  fallback = std::max(fallback, other.fallback);
}

size_t FactorStores::Plan(std::span<const FactorPairBytes> needed, int threads) {
  planned_.assign(std::min<size_t>(needed.size(), threads), {});
  FactorPairBytes from_here;  // of this task and all later ones
  for (size_t task = needed.size(); task-- > 0;) {
    from_here.RaiseTo(needed[task]);
    if (task < planned_.size()) planned_[task] = from_here;
  }
  size_t bytes = 0;
  for (const FactorPairBytes& store : planned_) bytes += store.most();
  return bytes;
}

void FactorStores::Reserve(size_t max_bytes) {
  size_t bytes = 0;
  for (size_t k = 0; k < stores_.size(); ++k) {
    const FactorPairBytes planned = k < planned_.size() ? planned_[k] : FactorPairBytes();
    const FactorPair& factors = stores_[k]->factors;
    bytes += factors.preconditioner.StorageBytesAfter(planned.single) +
             factors.exact.StorageBytesAfter(std::max(planned.exact, planned.fallback));
  }
  for (size_t k = stores_.size(); k < planned_.size(); ++k) bytes += planned_[k].most();
  if (bytes > max_bytes) stores_.clear();
  while (stores_.size() < planned_.size()) stores_.push_back(std::make_unique<Store>());
  for (size_t k = 0; k < planned_.size(); ++k) {
    stores_[k]->factors.preconditioner.Reserve(planned_[k].single);
    stores_[k]->factors.exact.Reserve(planned_[k].exact);
  }
}

int FactorStores::Acquire(int task) {
  const std::lock_guard lock(mutex_);
  int number = std::min(task, static_cast<int>(planned_.size()) - 1);
  while (number > 0 && stores_[number]->in_use) --number;
  assert(!stores_[number]->in_use);
  stores_[number]->in_use = true;
  return number;
}

void FactorStores::Release(int number) {
  const std::lock_guard lock(mutex_);
  stores_[number]->in_use = false;
}

size_t FactorStores::storage_bytes() const {
  size_t bytes = 0;
  for (const std::unique_ptr<Store>& store : stores_) bytes += store->factors.storage_bytes();
  return bytes;
}

}  // namespace sap
