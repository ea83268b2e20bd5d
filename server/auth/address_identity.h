// Names the client of a call by the address it calls from.
#pragma once

#include <string>

namespace sap {

// The address in a peer of gRPC, without the port, which differs between connections. An IPv6
// address is its first 64 bits: a host commonly has a whole /64 and may call from any of it.
//   ipv4:10.0.0.7:41234                   ipv4:10.0.0.7
//   ipv6:%5B2001:db8:0:5::17%5D:41234     ipv6:2001:db8:0:5::/64
//   ipv6:%5B::ffff:10.0.0.7%5D:41234      ipv4:10.0.0.7
//   unix:/run/sap.sock                    unix
std::string AddressIdentity(const std::string& peer);

}  // namespace sap
