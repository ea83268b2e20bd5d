// The inputs of a problem whose derivatives a client wants: from the paths of the request to the
// arrays of a gradient message.
#pragma once

#include <google/protobuf/field_mask.pb.h>

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sap/v1/gradient.pb.h"
#include "sap/v1/problem.pb.h"
#include "server/service_error.h"
#include "solver/problem/input_differential.h"

namespace sap {

class WantedInputs {
 public:
  // Meaning of the paths as in DifferentiateRequest.wanted. The problem need not be valid.
  static tl::expected<WantedInputs, ServiceError> Decode(const google::protobuf::FieldMask& paths,
                                                         const v1::ContactProblem& problem);

  bool applied_impulse() const { return applied_impulse_; }
  bool delassus_estimate() const { return delassus_estimate_; }

  // Bound on the size of the wanted part of `Gradient.gradient`, for a problem that is valid.
  int64_t most_bytes() const { return most_bytes_; }

  // Fills the wanted arrays.
  void Encode(const InputDifferential& gradient, v1::ContactProblem* message) const;

 private:
  bool AddPath(const std::string& path, const std::vector<int64_t>& sizes);

  std::vector<bool> inputs_;
  bool applied_impulse_{false};
  bool delassus_estimate_{false};
  int64_t most_bytes_{0};
};

}  // namespace sap
