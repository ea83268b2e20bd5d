#include "client/cpp/transport/pending_problems.h"

#include <numeric>

namespace sap::client {

PendingProblems::PendingProblems(std::span<const ContactProblemView> batch)
    : problems_(batch.begin(), batch.end()),
      index_in_batch_(batch.size()),
      answered_(batch.size()),
      num_left_(batch.size()) {
  std::iota(index_in_batch_.begin(), index_in_batch_.end(), 0u);
}

std::optional<uint32_t> PendingProblems::Take(uint32_t index) {
  if (index >= problems_.size() || answered_[index]) return std::nullopt;
  answered_[index] = true;
  --num_left_;
  return index_in_batch_[index];
}

void PendingProblems::Narrow() {
  size_t left = 0;
  for (size_t i = 0; i < problems_.size(); ++i) {
    if (answered_[i]) continue;
    problems_[left] = problems_[i];
    index_in_batch_[left++] = index_in_batch_[i];
  }
  problems_.resize(left);
  index_in_batch_.resize(left);
  answered_.assign(left, false);
}

}  // namespace sap::client
