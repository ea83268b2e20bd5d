// Addresses of servers as text, and what a gRPC channel makes of them. Internal.
//
//   HOST:PORT, unix:PATH           one server, or a proxy in front of several
//   HOST:PORT,HOST:PORT,...        these servers, in turn, while they are healthy
//   dns:///NAME:PORT               those that the name has; resolved again when a connection ends
//   dns://SERVER/NAME:PORT         the same by that DNS server
//   xds:///NAME                    whatever the control plane says
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/error.h"

namespace sap::client {

struct Address {
  enum class Kind : uint8_t { kOne, kList, kDns, kXds };

  std::string text;  // as given
  Kind kind{Kind::kOne};
  std::vector<std::string> servers;  // of a list: HOST:PORT each
  std::string host;      // of a list: the one that all its servers have in common; empty: none
  bool is_local{false};  // whether it can only be on this machine

  // Whether the client chooses among servers: by round_robin, without those that do not serve.
  bool is_balanced() const { return kind == Kind::kList || kind == Kind::kDns; }
};

// An error that says what the address should be. Resolves no name.
tl::expected<Address, Error> ParseAddress(const std::string& text);

// The target of a gRPC channel. Names of a list are resolved here, once; an error if one has no
// address.
tl::expected<std::string, Error> ResolveTarget(const Address& address);

// The servers of an address, each as an address of its own: those of a list, and those that the
// name of "dns:///NAME:PORT" has now. Any other address is its only one: what is behind a proxy or
// a control plane cannot be seen.
tl::expected<std::vector<Address>, Error> ServersOf(const Address& address);

}  // namespace sap::client
