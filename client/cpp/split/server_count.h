// The number of servers behind an address.
#pragma once

#include <string>

namespace sap::client {

// Of "A:1,B:2": the addresses in the list. Of "dns:///NAME:PORT": those that the name has now, as
// this machine resolves it; 1 if it has none. 1 of every other address: what is behind a proxy or a
// control plane cannot be seen. Asks the resolver each time.
int CountServers(const std::string& text);

}  // namespace sap::client
