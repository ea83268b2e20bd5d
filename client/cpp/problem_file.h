// Contact problems in files: the JSON mapping of sap.v1.ContactProblem with the field names of the
// schema, or the binary message; either may be gzipped.
//
// An unknown key is an error that names it, since a misspelt optional array would otherwise count
// as absent. Four extra keys at the top level are allowed and ignored: name, source, reference,
// drake_velocity. "NaN" and "Infinity" are read as numbers; the solver rejects them with field and
// index.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"

namespace sap::client {

// The format is detected from the contents. Errors name the file.
tl::expected<Problem, Error> LoadProblem(const std::string& path);

// The format follows the name: *.json and *.json.gz are JSON, all else is binary; *.gz is gzipped.
tl::expected<void, Error> SaveProblem(const Problem& problem, const std::string& path);

// The problem from JSON text, as in such a file.
tl::expected<Problem, Error> ProblemFromJson(const std::string& text);

}  // namespace sap::client
