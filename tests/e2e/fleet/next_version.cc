// The server of the next release, as far as clients can tell: linked in place of
// server/server_version.cc.
#include "server/server_identity.h"

namespace sap {

const char* ServerVersion() { return SAP_VERSION "-next"; }

}  // namespace sap
