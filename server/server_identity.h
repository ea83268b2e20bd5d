// Who answers. Clients tell by it whether a server ended a call or the connection was lost, and
// whether servers of one fleet give equal bits.
#pragma once

#include <string>

namespace sap {

// "0.2.0"
const char* ServerVersion();

// "VERSION INSTRUCTION_SET BOOT_ID": trailing metadata `sap-server`, and SessionOpened.server.
const std::string& ServerIdentity();

}  // namespace sap
