#include "solver/problem/input_selection.h"

#include "solver/problem/input_arrays.h"

namespace sap {
namespace {

// More than there are inputs; each takes a search of all of them, before a server admits the call.
constexpr size_t kMostPaths = 256;

bool IsIn(std::string_view path, std::string_view group) {
  return path.size() > group.size() && path.starts_with(group) && path[group.size()] == '.';
}

// As A or J.
bool IsLarge(std::string_view path) {
  return path == "trees.dynamics_matrix" || path == "trees.coupling_block" ||
         path == "contacts.jacobian" || path == "contacts.angular_jacobian";
}

// How many doubles of each input the problem has; 0: the default.
std::vector<int64_t> SizesIn(const ContactProblemView& problem, const GivenRegularization& given) {
  std::vector<int64_t> sizes{1};
  Regularization::ForEach(
      [&](const char*, bool is_input, bool is_given) {
        if (is_input) sizes.push_back(is_given);
      },
      given);
  ForEachInput(
      [&](const FieldName&, std::span<const double> array) {
        sizes.push_back(static_cast<int64_t>(array.size()));
      },
      problem);
  return sizes;
}

// Most doubles of an array that has its default: three per contact, as surface_velocity.
int64_t MostInDefault(const ContactProblemView& problem, std::string_view path) {
  const auto size = [](const auto& array) { return static_cast<int64_t>(array.size()); };
  if (IsIn(path, "contacts")) return 3 * CountContacts(problem.contacts);
  if (IsIn(path, "body_contacts")) return 3 * size(problem.body_contacts.body_a);
  if (IsIn(path, "rows")) return size(problem.rows.entries);
  return 1;
}

}  // namespace

const std::vector<std::string>& InputPaths() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> all;
    const auto add = [&all](const FieldName& name) { all.push_back(name.Text()); };
    ForEachNumberInput(add);
    const InputSizes arrays;
    ForEachInput([&add](const FieldName& name, int64_t) { add(name); }, arrays);
    return all;
  }();
  return paths;
}

tl::expected<InputSelection, ProblemError> InputSelection::Make(
    std::span<const std::string_view> paths, const ContactProblemView& problem,
    const GivenRegularization& given) {
  if (paths.size() > kMostPaths) {
    return tl::unexpected(ProblemError{"wanted", -1,
                                       "has " + std::to_string(paths.size()) + " paths; at most " +
                                           std::to_string(kMostPaths) + " are accepted"});
  }
  const std::vector<std::string>& inputs = InputPaths();
  const std::vector<int64_t> sizes = SizesIn(problem, given);
  InputSelection selection;
  selection.wanted_.resize(inputs.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (selection.AddPath(paths[i], sizes)) continue;
    return tl::unexpected(
        ProblemError{"wanted.paths", static_cast<int64_t>(i),
                     "is '" + std::string(paths[i].substr(0, 64)) +
                         "'; it must be applied_impulse, delassus_estimate, or the path in "
                         "ContactProblem of an input that has a derivative"});
  }
  if (paths.empty()) {
    selection.applied_impulse_ = selection.delassus_estimate_ = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      selection.wanted_[i] = !IsLarge(inputs[i]) && sizes[i] > 0;
    }
  }
  selection.most_doubles_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!selection.wanted_[i]) continue;
    selection.most_doubles_[i] = sizes[i] > 0 ? sizes[i] : MostInDefault(problem, inputs[i]);
  }
  return selection;
}

// False: the path is unknown.
bool InputSelection::AddPath(std::string_view path, const std::vector<int64_t>& sizes) {
  if (path == "applied_impulse") return applied_impulse_ = true;
  if (path == "delassus_estimate") return delassus_estimate_ = true;
  const std::vector<std::string>& inputs = InputPaths();
  bool known = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_named = inputs[i] == path;
    if (!is_named && !IsIn(inputs[i], path)) continue;
    known = true;
    if (is_named || sizes[i] > 0) wanted_[i] = true;
  }
  return known;
}

}  // namespace sap
