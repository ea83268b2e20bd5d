// The problems of a StreamBatch that have no outcome yet. After a loss only they are sent again, so
// that each problem of the batch has one outcome. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "solver/problem/problem_fields.h"

namespace sap::client {

class PendingProblems {
 public:
  explicit PendingProblems(std::span<const ContactProblemView> batch);

  // The problems to send: the whole batch at first.
  std::span<const ContactProblemView> problems() const { return problems_; }

  // The index in the batch of a problem that was sent, whose outcome has arrived. Absent: it has
  // had one, or there is no such problem.
  std::optional<uint32_t> Take(uint32_t index);

  size_t size() const { return num_left_; }
  bool empty() const { return num_left_ == 0; }

  // Leaves only the problems without an outcome to be sent.
  void Narrow();

 private:
  std::vector<ContactProblemView> problems_;
  std::vector<uint32_t> index_in_batch_;  // of each
  std::vector<bool> answered_;            // each
  size_t num_left_;
};

}  // namespace sap::client
