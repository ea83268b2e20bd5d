// Encodes a problem: into a message, or straight into the bytes that the message would have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sap/v1/problem.pb.h"
#include "solver/problem/problem_fields.h"

namespace sap {

// The message then has all of its groups, empty ones too. Values are copied unchecked.
void EncodeProblem(const ContactProblemView& problem, v1::ContactProblem* message);

// The serialized form of that message, made from the arrays by one copy: packed numbers of fixed
// size are little-endian memory, with a tag and a length before them.
class ProblemBytes {
 public:
  // The arrays must outlive this.
  explicit ProblemBytes(const ContactProblemView& problem);

  size_t size() const { return size_; }
  // Writes size() bytes and returns their end.
  uint8_t* Write(uint8_t* to) const;

 private:
  void AddSizes(size_t begin, size_t end, size_t* size);
  uint8_t* WriteFields(size_t begin, size_t end, uint8_t* to) const;

  double time_step_;
  v1::Regularization regularization_;
  std::vector<std::span<const std::byte>> arrays_;  // in the order of ForEachArray
  std::vector<size_t> lengths_;                     // of the fields, without tag and length
  size_t size_{0};
};

}  // namespace sap
