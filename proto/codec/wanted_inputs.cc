#include "proto/codec/wanted_inputs.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

std::vector<std::string_view> NamesIn(const google::protobuf::FieldMask& paths) {
  return {paths.paths().begin(), paths.paths().end()};
}

GivenRegularization GivenIn(const v1::ContactProblem& problem) {
  const v1::Regularization& regularization = problem.regularization();
  GivenRegularization given;
#define SAP_NUMBER(name, input) given.name = regularization.has_##name();
#include "solver/problem/problem_fields.inc"
  if (regularization.preset() == v1::REGULARIZATION_PRESET_RIGID) {
    given.beta = given.sigma = given.row_beta = true;
  }
  return given;
}

int64_t MostBytes(const InputSelection& wanted) {
  constexpr int64_t kMostOfTagsAndLengths_bytes = 48;
  int64_t bytes = 0;
  for (size_t i = 0; i < InputPaths().size(); ++i) {
    if (!wanted.wanted(i)) continue;
    bytes +=
        static_cast<int64_t>(sizeof(double)) * wanted.most_doubles(i) + kMostOfTagsAndLengths_bytes;
  }
  return bytes;
}

void EncodeInputs(const InputDifferential& gradient, const InputSelection& wanted,
                  v1::ContactProblem* message) {
  const std::vector<PathFields>& fields = AllFields();
  size_t i = 0;
  const auto encode = [&](std::span<const double> values) {
    if (wanted.wanted(i)) EncodeInput(fields[i], values, message);
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
