// The problems of a StreamBatch that have no outcome yet. After a loss only they are sent again, so
// that each problem of the batch has one outcome. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sap/v1/solver_service.pb.h"

namespace sap::client {

class PendingProblems {
 public:
  // The batch must outlive this.
  explicit PendingProblems(const v1::StreamBatchRequest& batch);

  // What to send: the batch itself at first.
  const v1::StreamBatchRequest& request() const { return is_whole_ ? batch_ : rest_; }

  // The index in the batch of a problem of the request whose outcome has arrived. Absent: it has
  // had one, or there is no such problem.
  std::optional<uint32_t> Take(uint32_t index);

  size_t size() const { return num_left_; }
  bool empty() const { return num_left_ == 0; }

  // Leaves only the problems without an outcome in the request.
  void Narrow();

 private:
  const v1::StreamBatchRequest& batch_;
  std::vector<bool> answered_;  // of the batch
  size_t num_left_;
  bool is_whole_{true};
  v1::StreamBatchRequest rest_;
  std::vector<uint32_t> index_of_rest_;  // in the batch
};

}  // namespace sap::client
