#include "server/server_identity.h"

namespace sap {

const char* ServerVersion() { return SAP_VERSION; }

}  // namespace sap
