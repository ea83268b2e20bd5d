#include "tests/support/golden_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/problem/input_arrays.h"
#include "tests/support/problem_json.h"

namespace sap::test {

namespace {

// The numbers of "contacts.friction", say, in one gradient of a file.
std::vector<double> ArrayAt(const Json& gradient, const std::string& path) {
  const bool beside = path == "applied_impulse" || path == "delassus_estimate";
  const Json* at = beside ? &gradient : &gradient.at("gradient");
  for (size_t start = 0; start != std::string::npos;) {
    const size_t dot = path.find('.', start);
    const std::string key = path.substr(start, dot == std::string::npos ? dot : dot - start);
    if (!at->contains(key)) return {};
    at = &at->at(key);
    start = dot == std::string::npos ? dot : dot + 1;
  }
  if (at->is_number()) return {at->get<double>()};
  return at->get<std::vector<double>>();
}

std::vector<NamedGradient> ReadGradients(const Json& gradients,
                                         const std::map<std::string, double>& inputs) {
  std::vector<NamedGradient> read;
  for (const Json& gradient : gradients) {
    NamedGradient& named = read.emplace_back();
    for (const auto& [input, scale] : inputs) named[input] = ArrayAt(gradient, input);
  }
  return read;
}

CotangentArrays ReadCotangent(const Json& from) {
  CotangentArrays cotangent;
  ReadValues(from, "velocity", &cotangent.velocity);
  ReadValues(from, "impulse", &cotangent.impulse);
  ReadValues(from, "contact_velocity", &cotangent.contact_velocity);
  cotangent.cost = from.value("cost", 0.0);
  return cotangent;
}

bool IsFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

double LargestError(const std::vector<double>& expected, const std::vector<double>& actual) {
  if (expected.size() != actual.size() || !IsFinite(actual)) {
    return std::numeric_limits<double>::infinity();
  }
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(actual[i] - expected[i]));
  }
  return error;
}

GradientError JudgeBranch(const GoldenGradients& golden, const std::vector<NamedGradient>& expected,
                          const std::vector<NamedGradient>& actual) {
  GradientError worst;
  for (size_t k = 0; k < expected.size(); ++k) {
    for (const auto& [input, values] : expected[k]) {
      if (golden.ill_conditioned.count(input) > 0) continue;
      const auto found = actual.at(k).find(input);
      const double error = found == actual[k].end() ? std::numeric_limits<double>::infinity()
                                                    : LargestError(values, found->second);
      const double over = error / (golden.scale.at(input) * golden.tolerance.at(input));
      if (over > worst.over_allowed) worst = {over, input};
    }
  }
  return worst;
}

}  // namespace

Cotangent CotangentArrays::View() const {
  Cotangent cotangent;
  cotangent.velocity = velocity;
  cotangent.impulse = impulse;
  cotangent.contact_velocity = contact_velocity;
  cotangent.row_impulse = row_impulse;
  cotangent.row_velocity = row_velocity;
  cotangent.angular_impulse = angular_impulse;
  cotangent.cost = cost;
  return cotangent;
}

GoldenGradients LoadGoldenGradients(const std::string& name) {
  GoldenGradients golden;
  const std::filesystem::path path = GoldenPath(name, GoldenSet::kGradients);
  if (path.empty()) return golden;
  const Json json = ReadJson(path);
  const Json& problem = json.at("problem");
  golden.arrays = problem.is_string() ? LoadGolden(problem.get<std::string>()).arrays
                                      : ProblemFromJson(problem);
  golden.hold_delassus = json.at("hold_delassus").get<bool>();
  for (const Json& cotangent : json.at("cotangents")) {
    golden.cotangents.push_back(ReadCotangent(cotangent));
  }
  json.at("scale").get_to(golden.scale);
  json.at("tolerance").get_to(golden.tolerance);
  json.at("ill_conditioned").get_to(golden.ill_conditioned);
  const Json& expected = json.at("expected");
  ReadValues(expected, "kink_margin", &golden.kink_margin);
  if (expected.contains("alternatives")) {
    for (const Json& branch : expected.at("alternatives")) {
      golden.branches.push_back(ReadGradients(branch, golden.scale));
    }
    ReadValues(json.at("kink"), "energy_bound", &golden.energy_bound);
  } else {
    golden.branches.push_back(ReadGradients(expected.at("gradients"), golden.scale));
  }
  return golden;
}

NamedGradient Named(const ContactProblemView& inputs, const ContactProblem& problem,
                    const Gradient& gradient) {
  InputDifferential by_inputs;
  ToInputs(inputs, problem, gradient.problem, &by_inputs);
  NamedGradient named;
  ForEachInput([&named](const FieldName& field,
                        const std::vector<double>& values) { named[field.Text()] = values; },
               by_inputs);
  named["time_step"] = {by_inputs.time_step};
  named["regularization.beta"] = {by_inputs.regularization.beta};
  named["regularization.sigma"] = {by_inputs.regularization.sigma};
  named["regularization.row_beta"] = {by_inputs.regularization.row_beta};
  named["regularization.stiction_speed"] = {by_inputs.regularization.stiction_speed};
  named["regularization.reference_time_step"] = {by_inputs.regularization.reference_time_step};
  named["applied_impulse"] = gradient.applied_impulse;
  named["delassus_estimate"] = gradient.problem.w;
  return named;
}

GradientError JudgeGradients(const GoldenGradients& golden,
                             const std::vector<NamedGradient>& actual) {
  GradientError best{std::numeric_limits<double>::infinity(), ""};
  for (const std::vector<NamedGradient>& branch : golden.branches) {
    const GradientError error = JudgeBranch(golden, branch, actual);
    if (error.over_allowed < best.over_allowed) best = error;
  }
  return best;
}

bool IsWithinEnergyBound(const GoldenGradients& golden, const ContactProblem& problem,
                         const std::vector<NamedGradient>& actual) {
  for (size_t k = 0; k < actual.size(); ++k) {
    for (const auto& [input, values] : actual[k]) {
      if (!IsFinite(values)) return false;
    }
    const std::vector<double>& lambda = actual[k].at("applied_impulse");
    double energy = 0;
    for (int tree = 0; tree < problem.num_trees(); ++tree) {
      const int n = problem.dofs()[tree];
      const double* A = problem.dynamics_matrix().data() + problem.matrix_start()[tree];
      const double* x = lambda.data() + problem.velocity_start()[tree];
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) energy += x[i] * A[i * n + j] * x[j];
      }
    }
    if (energy > golden.energy_bound.at(k) * (1 + 1e-6)) return false;
  }
  return true;
}

}  // namespace sap::test
