// The inputs of a problem whose derivatives a client wants: from the paths of the request to the
// arrays of a gradient message.
#pragma once

#include <google/protobuf/field_mask.pb.h>

#include <cstdint>
#include <tl/expected.hpp>

#include "sap/v1/gradient.pb.h"
#include "sap/v1/problem.pb.h"
#include "solver/engine/engine_error.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/input_selection.h"

namespace sap {

class WantedInputs {
 public:
  WantedInputs() = default;  // nothing
  // Meaning of the paths as in DifferentiateRequest.wanted. The problem need not be valid.
  static tl::expected<WantedInputs, EngineError> Decode(const google::protobuf::FieldMask& paths,
                                                        const v1::ContactProblem& problem);

  bool applied_impulse() const { return selection_.applied_impulse(); }
  bool delassus_estimate() const { return selection_.delassus_estimate(); }

  // Bound on the size of the wanted part of `Gradient.gradient`, for a problem that is valid.
  int64_t most_bytes() const { return most_bytes_; }

  // Fills the wanted arrays.
  void Encode(const InputDifferential& gradient, v1::ContactProblem* message) const;

 private:
  explicit WantedInputs(InputSelection selection);

  InputSelection selection_;
  int64_t most_bytes_{0};
};

}  // namespace sap
