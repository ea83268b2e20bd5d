// Structs of the C interface as messages, for what is written to and read from files.
#pragma once

#include <memory>
#include <tl/expected.hpp>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "sap/v1/problem.pb.h"
#include "sap/v1/recording.pb.h"
#include "sap/v1/solution.pb.h"

namespace sap::c {

tl::expected<v1::ContactProblem, Error> ToMessage(const sap_problem* problem);
tl::expected<v1::ContactSolution, Error> ToMessage(const sap_solution* given);
tl::expected<v1::RecordedSolve, Error> ToMessage(const sap_record* given);
tl::expected<std::unique_ptr<RecordStructs>, Error> RecordOf(const v1::RecordedSolve& message);

}  // namespace sap::c
