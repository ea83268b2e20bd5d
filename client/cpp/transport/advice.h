// Advice about a connection that cannot be made, in place of gRPC's message. Internal.
#pragma once

#include <string>
#include <string_view>

namespace sap::client {

// One sentence, without an end: "the server does not speak TLS: connect without it". `said` is the
// text of a status of gRPC, `encrypted` whether the client speaks TLS. Empty: there is no better
// text.
std::string Advice(std::string_view said, bool encrypted);

}  // namespace sap::client
