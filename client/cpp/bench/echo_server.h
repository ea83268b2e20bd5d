// A gRPC server without a solver, as a baseline for sap-server. For each method and request size it
// solves one problem, keeps the response, and answers all later requests with these bytes without
// parsing them. Its time is that of gRPC for messages of the same sizes. With a busy time per
// answer, as long as a solve takes, it also includes the wake-up of idle threads and processors.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace sap::client {

// Serves until the process ends; calls `listening` with its address. Before each answer the thread
// spins for the time `busy`. Returns an error if it cannot listen.
std::string ServeEcho(const std::string& address, int threads, std::chrono::nanoseconds busy,
                      const std::function<void(const std::string& address)>& listening);

}  // namespace sap::client
