// Version, hardware and limits of a server, or of the solver in this process.
#pragma once

#include <cstdint>
#include <string>

namespace sap::client {

// See GetServerInfoResponse in proto/sap/v1/solver_service.proto. The limits are members, listed in
// server_limits.inc; one that this process, "embedded:", does not have is the largest number.
struct ServerInfo {
  std::string version;
  std::string instruction_set;
  std::string boot_id;  // of the process: different after each start
  uint32_t processors{0};
  uint32_t solver_threads{0};
#define SAP_LIMIT(type, name, ...) type name{};
#include "solver/engine/server_limits.inc"
};

}  // namespace sap::client
