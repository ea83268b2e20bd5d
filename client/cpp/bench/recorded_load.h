// Uses a recording as load: the same problems at the same times.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/bench/load.h"

namespace sap::client {

// Adds the problems of a recording by `sap-server --record` or `sap-client record` to the load, due
// at their recorded times divided by `speed`. Speed 0: without due times. An error if the file
// holds no problem.
tl::expected<void, Error> AddRecording(const std::string& path, double speed, Load* load);

}  // namespace sap::client
