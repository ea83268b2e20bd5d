#include "tests/support/problem_set.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sap::test {

std::filesystem::path ProblemPath(const std::string& name) {
  std::vector<std::filesystem::path> directories;
  if (const char* full_set = std::getenv("SAP_PROBLEMS_DIR")) directories.emplace_back(full_set);
  directories.emplace_back(SAP_TEST_DATA_DIR);
  for (const auto& directory : directories) {
    for (const char* suffix : {".json", ".json.gz"}) {
      const std::filesystem::path path = directory / (name + suffix);
      if (std::filesystem::exists(path)) return path;
    }
  }
  return directories.back() / (name + ".json");
}

std::vector<std::filesystem::path> ConstraintProblemPaths() {
  std::vector<std::filesystem::path> paths;
  for (const auto& [folder, variable] : {std::pair("constraints", "SAP_PROBLEMS_CONSTRAINTS_DIR"),
                                         std::pair("soft", "SAP_PROBLEMS_SOFT_DIR")}) {
    std::filesystem::path directory = std::filesystem::path(SAP_TEST_DATA_DIR) / folder;
    if (const char* full_set = std::getenv(variable)) directory = full_set;
    std::error_code error;  // a directory that is not there holds no problems
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      const std::string file = entry.path().filename();
      if (file.ends_with(".json") || file.ends_with(".json.gz")) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace sap::test
