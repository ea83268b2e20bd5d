// The number of servers behind an address.
#pragma once

#include <string>

namespace sap::client {

// Counts the addresses in the list "A:1,B:2", or those that the name in "dns:///NAME:PORT" has now,
// as this machine resolves it; 1 if it has none. 1 for every other address: what is behind a proxy
// or a control plane cannot be seen. Asks the resolver each time.
int CountServers(const std::string& text);

}  // namespace sap::client
