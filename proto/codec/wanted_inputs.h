// The inputs of a problem whose derivatives a client wants: from the paths of the request to the
// arrays of a gradient message.
#pragma once

#include <google/protobuf/field_mask.pb.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "sap/v1/problem.pb.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/input_selection.h"

namespace sap {

// Views of the paths.
std::vector<std::string_view> NamesIn(const google::protobuf::FieldMask& paths);

GivenRegularization GivenIn(const v1::ContactProblem& problem);

// Bound on the size of the wanted part of `Gradient.gradient`, for a problem that is valid.
int64_t MostBytes(const InputSelection& wanted);

// Fills the wanted arrays.
void EncodeInputs(const InputDifferential& gradient, const InputSelection& wanted,
                  v1::ContactProblem* message);

}  // namespace sap
