// Messages of problems out of files and texts, as problem_file.h says it of problems. A message
// knows which numbers were absent. Internal.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "sap/v1/problem.pb.h"

namespace sap::client {

tl::expected<v1::ContactProblem, Error> LoadProblemMessage(const std::string& path);
tl::expected<v1::ContactProblem, Error> ProblemMessageFromJson(const std::string& text);

}  // namespace sap::client
