#include "client/cpp/transport/address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace sap::client {
namespace {

constexpr const char* kForms =
    "it must be embedded:, HOST:PORT, HOST:PORT,HOST:PORT,..., unix:PATH, dns:///NAME:PORT, "
    "dns://SERVER/NAME:PORT or xds:///NAME";

struct HostPort {
  std::string host;  // of IPv6 without its brackets
  std::string port;
};

bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  if (!std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return false;
  const int port = std::stoi(std::string(text));
  return port >= 1 && port <= 65535;
}

bool IsName(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < '\x7f' && std::string_view(":/[]@%,?#").find(c) == std::string_view::npos;
  });
}

// An address in brackets may have a scope: fe80::1%eth0.
bool IsIpv6(std::string_view text) {
  const std::string number(text.substr(0, text.find('%')));
  in6_addr parsed{};
  return inet_pton(AF_INET6, number.c_str(), &parsed) == 1;
}

std::optional<HostPort> SplitHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !IsPort(text.substr(colon + 1))) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!IsIpv6(host)) return std::nullopt;
  } else if (!IsName(host)) {
    return std::nullopt;
  }
  return HostPort{std::string(host), std::string(text.substr(colon + 1))};
}

// Any other name can lead anywhere.
bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr parsed{};
  return host.starts_with("127.") && inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

tl::unexpected<Error> Refuse(const std::string& text, const std::string& why) {
  return tl::unexpected(
      Error{ErrorCode::kInvalidArgument, "address is '" + text + "'; " + why, "address"});
}

tl::expected<Address, Error> ParseDns(Address address) {
  const std::string_view text(address.text);
  const size_t begin = std::string_view("dns://").size();
  const size_t slash = text.find('/', begin);
  if (slash == std::string_view::npos) return Refuse(address.text, kForms);
  const auto name = SplitHostPort(text.substr(slash + 1));
  if (!name) return Refuse(address.text, kForms);
  address.kind = Address::Kind::kDns;
  // A DNS server may say anything about localhost.
  address.is_local = slash == begin && name->host == "localhost";
  return address;
}

tl::expected<Address, Error> ParseList(Address address) {
  address.kind = Address::Kind::kList;
  address.is_local = true;
  const std::string& text = address.text;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string server = text.substr(begin, comma - begin);
    const auto parsed = SplitHostPort(server);
    if (!parsed) {
      return Refuse(text, "'" + server + "' in it must be HOST:PORT, with a port from 1 to 65535");
    }
    address.is_local = address.is_local && IsLoopback(parsed->host);
    if (address.servers.empty()) {
      address.host = parsed->host;
    } else if (address.host != parsed->host) {
      address.host.clear();
    }
    address.servers.push_back(server);
    begin = comma + 1;
  }
  return address;
}

struct Literal {
  std::string host;
  std::string port;
  bool is_ipv4;
};

// The numeric addresses of a server: IPv4 if its host has any, otherwise IPv6, so that a server
// with both does not count twice.
tl::expected<std::vector<Literal>, std::string> Resolve(const HostPort& server) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (failure != 0) return tl::unexpected<std::string>(gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<Literal> literals;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST) ==
        0) {
      literals.push_back({host, server.port, one->ai_family == AF_INET});
    }
  }
  if (std::ranges::any_of(literals, &Literal::is_ipv4))
    std::erase_if(literals, std::not_fn(&Literal::is_ipv4));
  return literals;
}

// As gRPC's resolver of literal addresses takes them: brackets and scope in percent encoding.
std::string InBrackets(const Literal& literal) {
  std::string host = literal.is_ipv4 ? "::ffff:" + literal.host : literal.host;
  if (const size_t scope = host.find('%'); scope != std::string::npos) host.insert(scope + 1, "25");
  return "%5B" + host + "%5D:" + literal.port;
}

}  // namespace

tl::expected<Address, Error> ParseAddress(const std::string& text) {
  Address address;
  address.text = text;
  if (text.starts_with("unix:")) {
    if (text.size() == std::string_view("unix:").size()) return Refuse(text, kForms);
    address.is_local = true;
    return address;
  }
  if (text.starts_with("dns://")) return ParseDns(std::move(address));
  if (text.starts_with("xds://")) {
    const size_t slash = text.find('/', std::string_view("xds://").size());
    if (slash == std::string::npos || slash + 1 == text.size()) return Refuse(text, kForms);
    address.kind = Address::Kind::kXds;
    return address;
  }
  if (text.find(',') != std::string::npos) return ParseList(std::move(address));
  const auto server = SplitHostPort(text);
  if (!server) return Refuse(text, kForms);
  address.is_local = IsLoopback(server->host);
  return address;
}

tl::expected<std::string, Error> ResolveTarget(const Address& address) {
  if (address.kind != Address::Kind::kList) return address.text;
  std::vector<Literal> literals;
  for (const std::string& server : address.servers) {
    const auto found = Resolve(*SplitHostPort(server));
    if (!found) {
      return tl::unexpected(Error{ErrorCode::kUnavailable,
                                  "address is '" + address.text + "'; the host of " + server +
                                      " has no address: " + found.error(),
                                  "address"});
    }
    literals.insert(literals.end(), found->begin(), found->end());
  }
  // One scheme per family. Where both occur, IPv4 addresses are written as IPv6.
  const bool is_ipv4 = std::ranges::all_of(literals, &Literal::is_ipv4);
  std::string target;
  for (const Literal& literal : literals) {
    target += target.empty() ? (is_ipv4 ? "ipv4:" : "ipv6:") : ",";
    target += is_ipv4 ? literal.host + ":" + literal.port : InBrackets(literal);
  }
  return target;
}

tl::expected<std::vector<Address>, Error> ServersOf(const Address& address) {
  constexpr std::string_view kDnsOfSystem = "dns:///";
  std::vector<Address> servers;
  if (address.kind == Address::Kind::kList) {
    for (const std::string& server : address.servers) {
      auto parsed = ParseAddress(server);
      if (!parsed) return tl::unexpected(parsed.error());
      servers.push_back(std::move(*parsed));
    }
    return servers;
  }
  if (address.kind != Address::Kind::kDns || !address.text.starts_with(kDnsOfSystem)) {
    return std::vector<Address>{address};
  }
  const std::string_view text = address.text;
  const auto name = SplitHostPort(text.substr(kDnsOfSystem.size()));
  const auto found = Resolve(*name);
  if (!found) {
    return tl::unexpected(
        Error{ErrorCode::kUnavailable,
              "address is '" + address.text + "'; it has no address: " + found.error(), "address"});
  }
  for (const Literal& literal : *found) {
    Address server = address;
    server.kind = Address::Kind::kOne;
    server.text = literal.is_ipv4 ? "ipv4:" + literal.host + ":" + literal.port
                                  : "ipv6:" + InBrackets(literal);
    server.host = name->host;
    servers.push_back(std::move(server));
  }
  return servers;
}

}  // namespace sap::client
