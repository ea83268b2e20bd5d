// The identity of a server, "VERSION INSTRUCTION_SET BOOT_ID", which it sends with what it has
// decided itself: in the trailing metadata of each call and in SessionOpened. What gRPC or a proxy
// decides has none.
// Internal.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "client/cpp/transport/call_types.h"

namespace sap::client {

struct ServerIdentity {
  std::string_view build;    // "VERSION INSTRUCTION_SET"; servers with equal ones give equal bits
  std::string_view boot_id;  // of the process
};

// Views of the text; empty if that is no identity.
ServerIdentity ParseServerIdentity(std::string_view text);

// Refuses answers of servers with another build than that of the first one: bits of answers may
// change with the version and the instruction set. Thread-safe.
class BuildCheck {
 public:
  explicit BuildCheck(bool allow_mixed_servers) : allow_mixed_servers_(allow_mixed_servers) {}

  // Checks the server of an answer; empty: nothing is known of it.
  Status Check(ServerIdentity server);

 private:
  const bool allow_mixed_servers_;
  std::mutex mutex_;
  std::string first_;  // build; empty: no server has answered
};

}  // namespace sap::client
