#include "tests/support/golden_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/support/problem_json.h"

namespace sap::test {

namespace {

// Where the problems of a set are: below tests/data, or where a variable says.
struct Place {
  const char* folder;
  const char* variable;
};

Place PlaceOf(GoldenSet set) {
  switch (set) {
    case GoldenSet::kConstraints:
      return {"constraints", "SAP_PROBLEMS_CONSTRAINTS_DIR"};
    case GoldenSet::kSoft:
      return {"soft", "SAP_PROBLEMS_SOFT_DIR"};
    case GoldenSet::kStiff:
      return {"stiff", "SAP_PROBLEMS_STIFF_DIR"};
    case GoldenSet::kGradients:
      return {"gradients", "SAP_PROBLEMS_GRADIENTS_DIR"};
    case GoldenSet::kFriction:
      break;
  }
  return {"", "SAP_PROBLEMS_DIR"};
}

std::filesystem::path SmallDirectory(GoldenSet set) {
  return std::filesystem::path(SAP_TEST_DATA_DIR) / PlaceOf(set).folder;
}

std::filesystem::path Directory(GoldenSet set) {
  const char* directory = std::getenv(PlaceOf(set).variable);
  return directory != nullptr && *directory != '\0' ? directory : SmallDirectory(set);
}

void ReadReference(const Json& from, Reference* reference) {
  ReadValues(from, "velocity", &reference->velocity);
  ReadValues(from, "impulse", &reference->impulse);
  ReadValues(from, "angular_impulse", &reference->angular_impulse);
  ReadValues(from, "row_impulse", &reference->row_impulse);
  reference->island_of_tree = from.value("island_of_tree", std::vector<int>());
  reference->cost = from.at("cost").get<double>();
  const Json& optimality = from.at("optimality");
  reference->velocity_error_bound_rel =
      optimality.value("velocity_error_bound", optimality.value("velocity_error_bound_rel", 0.0));
  reference->iterations_of_plain_newton = from.value("newton_iterations_from_guess_rtol_1e-6", 0);
}

GoldenProblem FromJson(const Json& json) {
  GoldenProblem problem;
  problem.arrays = ProblemFromJson(json);
  ReadReference(json.at("reference"), &problem.reference);
  ReadValues(json, "drake_velocity", &problem.drake_velocity);
  return problem;
}

}  // namespace

std::vector<std::string> GoldenNames(const std::string& prefix, GoldenSet set) {
  std::vector<std::string> names;
  std::error_code error;  // a directory that is not there holds no problems
  for (const auto& entry : std::filesystem::directory_iterator(Directory(set), error)) {
    const std::string file = entry.path().filename();
    const size_t end = file.find(".json");
    if (end == std::string::npos || !file.starts_with(prefix)) continue;
    names.push_back(file.substr(0, end));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string NameOfGolden(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::filesystem::path GoldenPath(const std::string& name, GoldenSet set) {
  for (const std::filesystem::path& directory : {Directory(set), SmallDirectory(set)}) {
    for (const char* suffix : {".json", ".json.gz"}) {
      std::filesystem::path path = directory / (name + suffix);
      if (std::filesystem::exists(path)) return path;
    }
  }
  ADD_FAILURE() << "no " << name << " in " << Directory(set);
  return {};
}

GoldenProblem LoadGolden(const std::string& name, GoldenSet set) {
  const std::filesystem::path path = GoldenPath(name, set);
  return path.empty() ? GoldenProblem() : FromJson(ReadJson(path));
}

}  // namespace sap::test
