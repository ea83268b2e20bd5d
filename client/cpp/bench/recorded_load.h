// A recording as a load: the problems that were sent, and when.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/bench/load.h"

namespace sap::client {

// Adds what `sap-server --record` or `sap-client record` wrote to the problems of the load, due
// when they arrived then, `speed` times as fast. Speed 0: without the times. An error if there is
// none.
tl::expected<void, Error> AddRecording(const std::string& path, double speed, Load* load);

}  // namespace sap::client
