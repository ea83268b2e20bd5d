#include "client/cpp/transport/pending_problems.h"

namespace sap::client {

PendingProblems::PendingProblems(const v1::StreamBatchRequest& batch)
    : batch_(batch), answered_(batch.problems_size()), num_left_(answered_.size()) {}

std::optional<uint32_t> PendingProblems::Take(uint32_t index) {
  if (index >= static_cast<uint32_t>(request().problems_size())) return std::nullopt;
  const uint32_t in_batch = is_whole_ ? index : index_of_rest_[index];
  if (answered_[in_batch]) return std::nullopt;
  answered_[in_batch] = true;
  --num_left_;
  return in_batch;
}

void PendingProblems::Narrow() {
  v1::StreamBatchRequest rest;
  if (batch_.has_options()) *rest.mutable_options() = batch_.options();
  index_of_rest_.clear();
  for (uint32_t i = 0; i < answered_.size(); ++i) {
    if (answered_[i]) continue;
    *rest.add_problems() = batch_.problems(static_cast<int>(i));
    index_of_rest_.push_back(i);
  }
  rest_ = std::move(rest);
  is_whole_ = false;
}

}  // namespace sap::client
