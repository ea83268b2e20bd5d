#include "tests/support/golden_problem.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace sap::test {

namespace {

using Json = nlohmann::json;

std::filesystem::path Directory() {
  const char* directory = std::getenv("SAP_PROBLEMS_DIR");
  return directory != nullptr && *directory != '\0' ? directory : SAP_TEST_DATA_DIR;
}

// The text of a file, gzipped or not: zlib reads both.
std::string ReadText(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char buffer[1 << 16];
  for (int got = gzread(file, buffer, sizeof(buffer)); got > 0;
       got = gzread(file, buffer, sizeof(buffer))) {
    text.append(buffer, static_cast<size_t>(got));
  }
  gzclose(file);
  return text;
}

template <typename Value>
void Read(const Json& from, const char* key, std::vector<Value>* to) {
  if (!from.contains(key)) return;
  from.at(key).get_to(*to);
}

void ReadContacts(const Json& from, ProblemArrays::Contacts* contacts) {
  Read(from, "tree_a", &contacts->tree_a);
  Read(from, "tree_b", &contacts->tree_b);
  Read(from, "jacobian", &contacts->jacobian);
  Read(from, "signed_distance", &contacts->law.signed_distance);
  Read(from, "stiffness", &contacts->law.stiffness);
  Read(from, "relaxation_time", &contacts->law.relaxation_time);
  Read(from, "friction", &contacts->law.friction);
  Read(from, "regularization_t", &contacts->law.regularization_t);
  Read(from, "regularization_n", &contacts->law.regularization_n);
}

GoldenProblem FromJson(const Json& json) {
  GoldenProblem problem;
  ProblemArrays& arrays = problem.arrays;
  arrays.time_step = json.at("time_step").get<double>();
  const Json& trees = json.at("trees");
  Read(trees, "dofs", &arrays.trees.dofs);
  Read(trees, "dynamics_matrix", &arrays.trees.dynamics_matrix);
  Read(trees, "free_motion_velocity", &arrays.trees.free_motion_velocity);
  Read(trees, "guess_velocity", &arrays.trees.guess_velocity);
  ReadContacts(json.at("contacts"), &arrays.contacts);
  arrays.regularization.beta = json.at("regularization").at("beta").get<double>();
  arrays.regularization.sigma = json.at("regularization").at("sigma").get<double>();
  const Json& reference = json.at("reference");
  Read(reference, "velocity", &problem.reference.velocity);
  Read(reference, "impulse", &problem.reference.impulse);
  Read(reference, "island_of_tree", &problem.reference.island_of_tree);
  problem.reference.cost = reference.at("cost").get<double>();
  problem.reference.velocity_error_bound_rel =
      reference.at("optimality").at("velocity_error_bound_rel").get<double>();
  problem.reference.iterations_of_plain_newton =
      reference.at("newton_iterations_from_guess_rtol_1e-6").get<int>();
  Read(json, "drake_velocity", &problem.drake_velocity);
  return problem;
}

}  // namespace

std::vector<std::string> GoldenNames(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code error;  // a directory that is not there holds no problems
  for (const auto& entry : std::filesystem::directory_iterator(Directory(), error)) {
    const std::string file = entry.path().filename();
    const size_t end = file.find(".json");
    if (end == std::string::npos || !file.starts_with(prefix)) continue;
    names.push_back(file.substr(0, end));
  }
  std::sort(names.begin(), names.end());
  return names;
}

GoldenProblem LoadGolden(const std::string& name) {
  for (const std::filesystem::path& directory :
       {Directory(), std::filesystem::path(SAP_TEST_DATA_DIR)}) {
    for (const char* suffix : {".json", ".json.gz"}) {
      const Json json = Json::parse(ReadText(directory / (name + suffix)), nullptr, false);
      if (!json.is_discarded()) return FromJson(json);
    }
  }
  ADD_FAILURE() << "cannot read " << name << " in " << Directory();
  return {};
}

}  // namespace sap::test
