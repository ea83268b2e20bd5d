#include "server/auth/address_identity.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <string_view>

namespace sap {
namespace {

// The text between brackets, which gRPC percent-encodes; without the zone ("%25eth0").
std::string HostOf(std::string_view peer) {
  for (const std::string_view bracket : {"%5B", "["}) {
    const size_t begin = peer.find(bracket);
    if (begin == std::string_view::npos) continue;
    const std::string_view host = peer.substr(begin + bracket.size());
    return std::string(host.substr(0, host.find_first_of("]%")));
  }
  return "";
}

}  // namespace

std::string AddressIdentity(const std::string& peer) {
  if (peer.starts_with("unix")) return "unix";
  in6_addr address{};
  if (peer.starts_with("ipv6:") && inet_pton(AF_INET6, HostOf(peer).c_str(), &address) == 1) {
    std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), 0);
    char text[INET6_ADDRSTRLEN] = "";
    return std::string("ipv6:") + inet_ntop(AF_INET6, &address, text, sizeof text) + "/64";
  }
  return peer.substr(0, peer.rfind(':'));
}

}  // namespace sap
