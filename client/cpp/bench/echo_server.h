// A bare gRPC server that says what a sap-server would say: it solves the first problem of each
// call's kind and size once, and from then on answers with the same bytes without looking at what
// came. What it takes is what gRPC takes, for messages of the same sizes; and what the machine
// takes to wake up who waits, if it is kept busy for as long as a solve takes.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace sap::client {

// Serves until the process ends, and says on which address. Returns why it cannot. Before each
// answer a thread is busy for that long.
std::string ServeEcho(const std::string& address, int threads, std::chrono::nanoseconds busy,
                      const std::function<void(const std::string& address)>& listening);

}  // namespace sap::client
