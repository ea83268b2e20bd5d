// How a client connects to its server.
#pragma once

#include <chrono>

#include "client/cpp/credentials.h"

namespace sap::client {

struct ConnectOptions {
  // Time to wait for the connection.
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(2)};
  // Solver threads of an embedded server; 0: one per processor.
  int threads{0};
  // Not used by an embedded server.
  Credentials credentials{};
  // Time within which a session that lost its connection or its server finds one again; then it
  // ends. 0: it ends at once.
  std::chrono::nanoseconds reconnect_within{std::chrono::seconds(5)};
  // Lower latency at the cost of processor time: a calling thread polls for up to a millisecond
  // before it sleeps, and the server is asked to keep processors out of sleep states between the
  // steps of a session, which its operator may forbid. Changes no answer.
  bool low_latency{false};
};

}  // namespace sap::client
