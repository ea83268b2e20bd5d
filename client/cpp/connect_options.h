// How a client connects to its server.
#pragma once

#include <atomic>
#include <chrono>

#include "client/cpp/credentials.h"

namespace sap::client {

struct ConnectOptions {
  // Time to wait for a connection to a server that takes calls. Names are resolved before that.
  // 0: Connect does not wait; the first call connects.
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(2)};
  // Solver threads of an embedded server; 0: one per processor.
  int threads{0};
  // Not used by an embedded server.
  Credentials credentials{};
  // Time within which a call that is lost is made again, and a session that is lost opened again.
  // Then the error is returned. 0: at once.
  std::chrono::nanoseconds reconnect_within{std::chrono::seconds(5)};
  // Lower latency at the cost of processor time: a calling thread polls for up to a millisecond
  // before it sleeps, and the server is asked to keep processors out of sleep states between the
  // steps of a session, which its operator may forbid. Changes no answer.
  bool low_latency{false};
  // Whether the outcomes of one session, batch stream, split scene or replay may be of servers that
  // differ in version or instruction set, and so in bits. If not, servers of another build than
  // that of the first outcome are passed over, and without others it ends with kFailedPrecondition,
  // reason OTHER_BUILD, or the scene is solved whole. Independent calls take any server.
  bool allow_mixed_servers{false};
  // Whether calls and sessions go to the first server of a list that can be reached, rather than
  // take turns. A connection is kept until it breaks or its server leaves.
  bool in_order{false};
  // Most connections to one server over which a large scene is divided, by Solve and by a session
  // that is not in the background and whose first step is large. The server receives, reads,
  // solves and answers it on as many threads, with the bits of the undivided one: whole islands go
  // into parts of at least a megabyte each, no more of them than the server has solver threads.
  // Each part counts as a call against the limits of the server; where these refuse one, the scene
  // is sent whole. 1: none is divided. Not used by an embedded server, nor where an address names
  // several servers, which `servers` of Solve is for.
  int scene_connections{1};
  // Set by any thread, it ends Connect with kCancelled. May be null.
  const std::atomic<bool>* cancelled{nullptr};
};

}  // namespace sap::client
