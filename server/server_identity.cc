#include "server/server_identity.h"

#include "solver/build_info.h"
#include "solver/engine/boot_id.h"

namespace sap {

const std::string& ServerIdentity() {
  static const std::string identity =
      std::string(ServerVersion()) + " " + InstructionSet() + " " + BootId();
  return identity;
}

}  // namespace sap
