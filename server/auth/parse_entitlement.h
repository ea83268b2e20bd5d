// Entitlements in the token file: words of the form key=value.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "server/server_config.h"

namespace sap {

// Applies one word to the entitlements. Keys and their values:
//   priority=high|normal  calls=N  bytes=N[Ki|Mi|Gi]  work-s=X  sessions=N  solve-s=X  rate=X
//   models=N[Ki|Mi|Gi]  worlds=yes|no
// An error names the key and what is accepted; then the entitlements are unchanged.
tl::expected<void, std::string> ParseEntitlement(std::string_view word, Entitlements* entitlements);

}  // namespace sap
