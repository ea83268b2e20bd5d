#include "proto/codec/wanted_inputs.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/codec/problem_decoder.h"
#include "solver/problem/input_arrays.h"

namespace sap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The fields from ContactProblem to the array or number of an input.
using PathFields = std::vector<const FieldDescriptor*>;

PathFields FieldsOf(const std::string& path) {
  PathFields fields;
  const auto* message = v1::ContactProblem::descriptor();
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    fields.push_back(message->FindFieldByName(path.substr(start, end - start)));
    message = fields.back()->message_type();
    start = end + 1;
  }
  return fields;
}

// The fields of every input, in the order of InputPaths().
const std::vector<PathFields>& AllFields() {
  static const std::vector<PathFields> fields = [] {
    std::vector<PathFields> all;
    for (const std::string& path : InputPaths()) all.push_back(FieldsOf(path));
    return all;
  }();
  return fields;
}

void EncodeInput(const PathFields& fields, std::span<const double> values,
                 v1::ContactProblem* gradient) {
  if (values.empty()) return;
  Message* owner = gradient;
  for (const FieldDescriptor* field : fields) {
    const auto* reflection = owner->GetReflection();
    if (field->message_type() != nullptr) {
      owner = reflection->MutableMessage(owner, field);
    } else if (field->is_repeated()) {
      const auto array = reflection->GetMutableRepeatedFieldRef<double>(owner, field);
      for (const double value : values) array.Add(value);
    } else {
      reflection->SetDouble(owner, field, values.front());
    }
  }
}

}  // namespace

WantedInputs::WantedInputs(InputSelection selection) : selection_(std::move(selection)) {
  constexpr int64_t kMostOfTagsAndLengths_bytes = 48;
  for (size_t i = 0; i < InputPaths().size(); ++i) {
    if (!selection_.wanted(i)) continue;
    most_bytes_ += static_cast<int64_t>(sizeof(double)) * selection_.most_doubles(i) +
                   kMostOfTagsAndLengths_bytes;
  }
}

tl::expected<WantedInputs, EngineError> WantedInputs::Decode(
    const google::protobuf::FieldMask& paths, const v1::ContactProblem& problem) {
  const std::vector<std::string_view> names(paths.paths().begin(), paths.paths().end());
  const v1::Regularization& regularization = problem.regularization();
  GivenRegularization given;
#define SAP_NUMBER(name, input) given.name = regularization.has_##name();
#include "solver/problem/problem_fields.inc"
  auto selection = InputSelection::Make(names, DecodeDirection(problem), given);
  if (!selection) return RefuseField(selection.error());
  return WantedInputs(*std::move(selection));
}

void WantedInputs::Encode(const InputDifferential& gradient, v1::ContactProblem* message) const {
  const std::vector<PathFields>& fields = AllFields();
  size_t i = 0;
  const auto encode = [&](std::span<const double> values) {
    if (selection_.wanted(i)) EncodeInput(fields[i], values, message);
    ++i;
  };
  ForEachNumberInput(
      [&](const FieldName&, const double& number) {
        encode({&number, 1});
      },
      gradient);
  ForEachInput([&](const FieldName&, const std::vector<double>& array) { encode(array); },
               gradient);
}

}  // namespace sap
