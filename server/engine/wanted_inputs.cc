#include "server/engine/wanted_inputs.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <array>
#include <span>

#include "server/engine/problem_decoder.h"
#include "solver/problem/input_arrays.h"

namespace sap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// More than there are inputs; each takes a search of all of them, before the call is admitted.
constexpr int kMostPaths = 256;

// The inputs that are single numbers, in the order of NumbersOf.
constexpr std::array kNumbers = {"time_step", "regularization.beta", "regularization.sigma",
                                 "regularization.row_beta", "regularization.stiction_speed"};

std::array<double, kNumbers.size()> NumbersOf(const InputDifferential& inputs) {
  const auto& regularization = inputs.regularization;
  return {inputs.time_step, regularization.beta, regularization.sigma, regularization.row_beta,
          regularization.stiction_speed};
}

struct Input {
  explicit Input(std::string path_of_field) : path(std::move(path_of_field)) {
    const auto* message = v1::ContactProblem::descriptor();
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find('.', start), path.size());
      fields.push_back(message->FindFieldByName(path.substr(start, end - start)));
      message = fields.back()->message_type();
      start = end + 1;
    }
    is_large = path == "trees.dynamics_matrix" || path == "contacts.jacobian" ||
               path == "contacts.angular_jacobian";
  }

  bool IsIn(const std::string& group) const {
    return path.size() > group.size() && path.starts_with(group) && path[group.size()] == '.';
  }

  std::string path;                            // "contacts.friction"
  std::vector<const FieldDescriptor*> fields;  // from ContactProblem to the array or number
  bool is_large;                               // as A or J: not wanted unless it is named
};

// Every input that has a derivative: the numbers, then the arrays in the order of ForEachInput.
const std::vector<Input>& AllInputs() {
  static const std::vector<Input> inputs = [] {
    std::vector<Input> all(kNumbers.begin(), kNumbers.end());
    const InputSizes none{};
    ForEachInput([&](const FieldName& name, int64_t) { all.emplace_back(name.Text()); }, none);
    return all;
  }();
  return inputs;
}

// How many doubles of each input the problem has; 0: the default.
std::vector<int64_t> SizesIn(const v1::ContactProblem& problem) {
  const v1::Regularization& regularization = problem.regularization();
  std::vector<int64_t> sizes{1, regularization.has_beta(), regularization.has_sigma(),
                             regularization.has_row_beta(), regularization.has_stiction_speed()};
  const ContactProblemView view = DecodeDirection(problem);
  ForEachInput(
      [&](const FieldName&, std::span<const double> array) {
        sizes.push_back(static_cast<int64_t>(array.size()));
      },
      view);
  return sizes;
}

// Most doubles of an array that has its default: three per contact, as surface_velocity.
int64_t MostInDefault(const v1::ContactProblem& problem, const Input& input) {
  if (input.IsIn("contacts")) return 3 * int64_t{problem.contacts().tree_a_size()};
  if (input.IsIn("body_contacts")) return 3 * int64_t{problem.body_contacts().body_a_size()};
  if (input.IsIn("rows")) return problem.rows().entries_size();
  return 1;
}

void EncodeInput(const Input& input, std::span<const double> values, v1::ContactProblem* gradient) {
  if (values.empty()) return;
  Message* owner = gradient;
  for (const FieldDescriptor* field : input.fields) {
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

tl::expected<WantedInputs, ServiceError> WantedInputs::Decode(
    const google::protobuf::FieldMask& paths, const v1::ContactProblem& problem) {
  if (paths.paths_size() > kMostPaths) {
    return RefuseField("wanted", "has " + std::to_string(paths.paths_size()) + " paths; at most " +
                                     std::to_string(kMostPaths) + " are accepted");
  }
  const std::vector<Input>& inputs = AllInputs();
  const std::vector<int64_t> sizes = SizesIn(problem);
  WantedInputs wanted;
  wanted.inputs_.resize(inputs.size());
  for (int i = 0; i < paths.paths_size(); ++i) {
    if (wanted.AddPath(paths.paths(i), sizes)) continue;
    return RefuseField("wanted.paths[" + std::to_string(i) + "]",
                       "is '" + paths.paths(i).substr(0, 64) +
                           "'; it must be applied_impulse, delassus_estimate, or the path in "
                           "ContactProblem of an input that has a derivative");
  }
  if (paths.paths().empty()) {
    wanted.applied_impulse_ = wanted.delassus_estimate_ = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      wanted.inputs_[i] = !inputs[i].is_large && sizes[i] > 0;
    }
  }
  constexpr int64_t kMostOfTagsAndLengths_bytes = 48;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted.inputs_[i]) continue;
    const int64_t most = sizes[i] > 0 ? sizes[i] : MostInDefault(problem, inputs[i]);
    wanted.most_bytes_ += static_cast<int64_t>(sizeof(double)) * most + kMostOfTagsAndLengths_bytes;
  }
  return wanted;
}

// False: the path is unknown.
bool WantedInputs::AddPath(const std::string& path, const std::vector<int64_t>& sizes) {
  if (path == "applied_impulse") return applied_impulse_ = true;
  if (path == "delassus_estimate") return delassus_estimate_ = true;
  const std::vector<Input>& inputs = AllInputs();
  bool known = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_named = inputs[i].path == path;
    if (!is_named && !inputs[i].IsIn(path)) continue;
    known = true;
    if (is_named || sizes[i] > 0) inputs_[i] = true;
  }
  return known;
}

void WantedInputs::Encode(const InputDifferential& gradient, v1::ContactProblem* message) const {
  const std::vector<Input>& inputs = AllInputs();
  size_t i = 0;
  const auto encode = [&](std::span<const double> values) {
    if (inputs_[i]) EncodeInput(inputs[i], values, message);
    ++i;
  };
  for (const double& number : NumbersOf(gradient)) encode({&number, 1});
  ForEachInput([&](const FieldName&, const std::vector<double>& array) { encode(array); },
               gradient);
}

}  // namespace sap
