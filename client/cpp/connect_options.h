// How a client reaches its server, and what it does for its answers.
#pragma once

#include <chrono>

#include "client/cpp/credentials.h"

namespace sap::client {

struct ConnectOptions {
  // How long to wait for a server to answer.
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(2)};
  // Solver threads of an embedded server; 0: one per processor.
  int threads{0};
  // Towards a server on the network; not for an embedded one.
  Credentials credentials{};
  // Whether a session whose connection is lost is resumed on a new one.
  bool resume_sessions{true};
  // Whether answers should come as soon as they can, at the price of processor time: the caller
  // polls for up to a millisecond before it sleeps, and servers are asked to be awake for each step
  // of a session, which their operators may forbid. Changes no answer.
  bool low_latency{false};
};

}  // namespace sap::client
