// What libsap_islands has in the place of transport/.
#include "client/c/backend.h"

namespace sap::c {

BackendOrError ConnectRemote(const char* address, const sap_connect_options&, const CallSettings&) {
  return Fail(SAP_UNIMPLEMENTED, std::string(address) +
                                     ": this library has no remote transport; use "
                                     "libsap_islands_client");
}

bool HasTransport() { return false; }

}  // namespace sap::c
