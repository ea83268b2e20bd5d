// Problems from JSON files: the proto3 JSON of ContactProblem with the names of the schema, and
// whatever else is in the file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/problem_arrays.h"

namespace sap::test {

using Json = nlohmann::json;

// Reads a file, gzipped or not. Discarded where there is none.
Json ReadJson(const std::filesystem::path& path);

// Appends the numbers of an array, none where it is absent. Infinities are strings, as in all JSON
// of Protocol Buffers.
void ReadValues(const Json& from, const char* key, std::vector<double>* to);

ProblemArrays ProblemFromJson(const Json& json);

}  // namespace sap::test
