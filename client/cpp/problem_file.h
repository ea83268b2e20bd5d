// Contact problems in files: the JSON mapping of sap.v1.ContactProblem with the names of the
// schema, or the binary message; either may be gzipped.
//
// A key that the schema does not have is refused by its name, so that a misspelt array cannot pass
// as absent. Four extra keys at the top level are allowed and not read: name, source, reference,
// drake_velocity. "NaN" and "Infinity" are read as such; the server refuses them with their place.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"

namespace sap::client {

// The format is seen from the contents. Errors name the file.
tl::expected<Problem, Error> LoadProblem(const std::string& path);

// The format follows the name: *.json or *.json.gz is JSON, anything else binary, *.gz gzipped.
tl::expected<void, Error> SaveProblem(const Problem& problem, const std::string& path);

// The problem from the text of such a JSON file.
tl::expected<Problem, Error> ProblemFromJson(const std::string& text);

}  // namespace sap::client
