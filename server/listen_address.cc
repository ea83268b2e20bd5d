#include "server/listen_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sap {

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
  if (!IsUnixSocket(address)) return false;
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
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost" || host == "::1") return true;
  in_addr parsed{};
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 && host.starts_with("127.");
}

}  // namespace sap
