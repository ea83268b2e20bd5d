#include "server/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sap {
namespace {

// The host of HOST:PORT, without brackets.
std::string HostOf(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

bool IsTakenByTcp(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = address.substr(address.rfind(':') + 1);
  if (getaddrinfo(HostOf(address).c_str(), port.c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  // As gRPC binds: connections that have just ended do not count.
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool is_taken = bind(fd, found->ai_addr, found->ai_addrlen) != 0 && errno == EADDRINUSE;
  close(fd);
  return is_taken;
}

}  // namespace

std::string CheckTcpAddress(const std::string& address) {
  std::string expected = "'" + address + "' is not an address; expected HOST:PORT";
  const size_t colon = address.rfind(':');
  if (IsUnixSocket(address) || colon == std::string::npos || colon == 0) return expected;
  const std::string port = address.substr(colon + 1);
  const bool numeric = !port.empty() && port.size() <= 5 &&
                       port.find_first_not_of("0123456789") == std::string::npos;
  return numeric && std::stoi(port) <= 65535 ? "" : expected;
}

std::string CheckAddress(const std::string& address) {
  if (IsUnixSocket(address) && address.size() > 5) return "";
  const std::string error = CheckTcpAddress(address);
  return error.empty() ? error : error + " or unix:PATH";
}

bool HasListener(const std::string& address) {
  if (!IsUnixSocket(address)) return IsTakenByTcp(address);
  const std::string path = address.substr(5);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) return false;  // gRPC reports the error
  std::memcpy(name.sun_path, path.data(), path.size());
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_fd < 0) return false;
  const int result = connect(socket_fd, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  const int error = result == 0 ? 0 : errno;
  close(socket_fd);
  // EAGAIN: too many connections wait to be accepted. EACCES: the socket of another user.
  return error == 0 || error == EAGAIN || error == EACCES;
}

std::string WithPort(const std::string& address, int port) {
  if (IsUnixSocket(address)) return address;
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

// A host name other than localhost is not resolved: it may map to any interface.
bool IsLocal(const std::string& address) {
  if (IsUnixSocket(address)) return true;
  const std::string host = HostOf(address);
  if (host == "localhost" || host == "::1") return true;
  in_addr parsed{};
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 && host.starts_with("127.");
}

}  // namespace sap
