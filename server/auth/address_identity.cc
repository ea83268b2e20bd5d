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

std::string Text(const std::string& scheme, int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof text);
  return scheme + text;
}

}  // namespace

std::string AddressIdentity(const std::string& peer) {
  if (peer.starts_with("unix")) return "unix";
  in6_addr address{};
  if (peer.starts_with("ipv6:") && inet_pton(AF_INET6, HostOf(peer).c_str(), &address) == 1) {
    if (IN6_IS_ADDR_V4MAPPED(&address)) return Text("ipv4:", AF_INET, address.s6_addr + 12);
    std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), 0);
    return Text("ipv6:", AF_INET6, &address) + "/64";
  }
  return peer.substr(0, peer.rfind(':'));
}

}  // namespace sap
