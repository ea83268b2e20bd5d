#include "tests/support/input_moves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "solver/problem/input_arrays.h"
#include "solver/problem/input_selection.h"

namespace sap::test {

namespace {

template <typename Problem>
std::map<std::string, double*> ScalarsOf(Problem* problem) {
  std::map<std::string, double*> scalars;
  ForEachNumberInput(
      [&](const FieldName& field, double& number) { scalars[field.Text()] = &number; }, *problem);
  return scalars;
}

int64_t SizeOf(const ContactProblemView& problem, const std::string& input) {
  int64_t found = 0;
  const InputSizes sizes = SizesOfInputs(problem);
  ForEachInput(
      [&](const FieldName& field, int64_t size) {
        if (field.Text() == input) found = size;
      },
      sizes);
  return found;
}

bool IsSigned(const std::string& name) {
  static const std::set<std::string> kSigned{"surface_velocity",
                                             "target_velocity",
                                             "target_angular_velocity",
                                             "position_error",
                                             "velocity_offset",
                                             "force_offset",
                                             "point",
                                             "center_of_mass",
                                             "normal",
                                             "tangent",
                                             "signed_distance"};
  return kSigned.count(name.substr(name.rfind('.') + 1)) > 0;
}

void Symmetrize(const std::vector<uint32_t>& dofs, std::vector<double>* matrices) {
  double* A = matrices->data();
  for (const uint32_t n : dofs) {
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = 0; j < i; ++j) A[i * n + j] = A[j * n + i];
    }
    A += n * n;
  }
}

// 0 where two inputs must stay equal, coefficients of a law of Hunt & Crossley or bounds that
// coincide, and where the frame of a contact jumps.
void HoldTied(const ProblemArrays& arrays, const std::string& name,
              std::vector<double>* direction) {
  const std::vector<double>& normal = arrays.body_contacts.normal;
  if (name == "body_contacts.normal" && arrays.body_contacts.tangent.empty()) {
    for (size_t i = 0; i < normal.size(); i += 3) {
      if (normal[i + 2] == 0) std::fill_n(direction->begin() + i, 3, 0.0);
    }
  }
  const ProblemArrays::Rows& rows = arrays.rows;
  if (name == "rows.force_lower" || name == "rows.force_upper") {
    if (rows.force_lower.empty() || rows.force_upper.empty()) return;
    for (size_t i = 0; i < direction->size(); ++i) {
      if (rows.force_lower[i] == rows.force_upper[i]) (*direction)[i] = 0;
    }
  }
  for (const auto& [group, law] : {std::pair{"contacts.", &arrays.contacts.law},
                                   std::pair{"body_contacts.", &arrays.body_contacts.law}}) {
    const bool coefficient =
        name == std::string(group) + "friction" || name == std::string(group) + "friction_2";
    if (!coefficient || law->friction_2.empty()) continue;
    for (size_t i = 0; i < law->law.size(); ++i) {
      if (law->law[i] > 1) (*direction)[i] = 0;
    }
  }
}

}  // namespace

std::vector<std::string> InputNames() { return InputPaths(); }

std::vector<double> DrawMove(Random* random, const ProblemArrays& arrays, const std::string& name) {
  ProblemArrays copy = arrays;
  const auto scalars = ScalarsOf(&copy);
  if (const auto scalar = scalars.find(name); scalar != scalars.end()) {
    return {*scalar->second * Uniform(random, 0.25, 0.5)};
  }
  std::vector<double> inputs = *FindArray(&copy, name);
  inputs.resize(SizeOf(arrays.View(), name), 0.0);
  std::vector<double> direction(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double size = IsSigned(name) ? 1 : std::abs(inputs[i]);
    if (std::isfinite(size)) direction[i] = size * Uniform(random, -0.5, 0.5);
  }
  if (name == "trees.dynamics_matrix") Symmetrize(arrays.trees.dofs, &direction);
  HoldTied(arrays, name, &direction);
  return direction;
}

InputDifferential NoDirection() {
  InputDifferential direction;
  direction.regularization = {0, 0, DelassusRule::kFull, 0, 0, 0, 0};
  return direction;
}

void SetDirection(const std::string& name, const std::vector<double>& values,
                  InputDifferential* direction) {
  const auto scalars = ScalarsOf(direction);
  if (const auto scalar = scalars.find(name); scalar != scalars.end()) {
    *scalar->second = values[0];
    return;
  }
  ForEachInput(
      [&](const FieldName& field, std::vector<double>& to) {
        if (field.Text() == name) to = values;
      },
      *direction);
}

ProblemArrays Moved(ProblemArrays arrays, const std::string& name,
                    const std::vector<double>& direction, double step) {
  const auto scalars = ScalarsOf(&arrays);
  if (const auto scalar = scalars.find(name); scalar != scalars.end()) {
    *scalar->second += step * direction[0];
    return arrays;
  }
  std::vector<double>& values = *FindArray(&arrays, name);
  values.resize(direction.size(), 0.0);
  for (size_t i = 0; i < direction.size(); ++i) values[i] += step * direction[i];
  return arrays;
}

}  // namespace sap::test
