#include "client/cpp/split/server_count.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "client/cpp/transport/address.h"

namespace sap::client {
namespace {

// NAME of "dns:///NAME:PORT" and "dns://SERVER/NAME:PORT".
std::string HostOf(std::string_view address) {
  const std::string_view host_and_port = address.substr(address.rfind('/') + 1);
  const size_t colon = host_and_port.rfind(':');
  return std::string(host_and_port.substr(0, colon));
}

int CountAddresses(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return 0;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  int count = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) ++count;
  return count;
}

}  // namespace

int CountServers(const std::string& text) {
  const auto address = ParseAddress(text);
  if (!address) return 1;
  if (address->kind == Address::Kind::kDns) return std::max(CountAddresses(HostOf(text)), 1);
  return std::max(static_cast<int>(address->servers.size()), 1);  // empty unless it is a list
}

}  // namespace sap::client
