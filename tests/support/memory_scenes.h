// Problems of one kind each, of some megabytes, by which memory is measured.
#pragma once

#include <string>
#include <vector>

#include "tests/support/problem_arrays.h"

namespace sap::test {

struct MemoryScene {
  std::string name;
  ProblemArrays problem;
};

// `scale` multiplies the numbers of trees, bodies, contacts and rows.
std::vector<MemoryScene> MemoryScenes(int scale = 1);

}  // namespace sap::test
