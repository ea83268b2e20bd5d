#include "tests/support/problem_set.h"

#include <cstdlib>
#include <vector>

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

}  // namespace sap::test
