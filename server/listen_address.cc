#include "server/listen_address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace sap {
namespace {

// The host of HOST:PORT, without brackets.
std::string HostOf(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

// A socket bound to the name, or -1 with errno set.
int Bind(const addrinfo& name) {
  const int fd = socket(name.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  // As gRPC binds: connections that have just ended do not count.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, name.ai_addr, name.ai_addrlen) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

constexpr const char* kTaken = "another server uses this address";

std::string Reason(int error) { return error == EADDRINUSE ? kTaken : std::strerror(error); }

std::string WhyNotUnix(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) return Reason(ENAMETOOLONG);
  std::memcpy(name.sun_path, path.data(), path.size());
  const auto folder = std::filesystem::path(path).parent_path() / ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) return Reason(errno);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  const int error = result == 0 ? 0 : errno;
  close(fd);
  // EAGAIN: too many connections wait to be accepted. EACCES: the socket of another user.
  return error == 0 || error == EAGAIN || error == EACCES ? kTaken : "";
}

}  // namespace

tl::expected<int, std::string> BindTcp(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = HostOf(address);
  const std::string port = address.substr(address.rfind(':') + 1);
  const int unknown =
      getaddrinfo(host == "*" ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (unknown != 0) return tl::unexpected(std::string(gai_strerror(unknown)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  int bound = -1;
  int error = 0;
  for (const addrinfo* name = found; name != nullptr && error != EADDRINUSE; name = name->ai_next) {
    const int fd = Bind(*name);
    if (fd < 0) error = errno;
    if (bound < 0) {
      bound = fd;
    } else {
      close(fd);
    }
  }
  if (bound >= 0 && error != EADDRINUSE) return bound;
  close(bound);
  return tl::unexpected(Reason(error));
}

std::string WhyNotListen(const std::string& address) {
  if (IsUnixSocket(address)) return WhyNotUnix(UnixPath(address));
  const auto fd = BindTcp(address);
  if (!fd) return fd.error();
  close(*fd);
  return "";
}

tl::expected<AddressClaim, std::string> AddressClaim::Make(const std::string& address) {
  AddressClaim claim(-1);
  if (IsUnixSocket(address)) {
    // Before the file of the lock is made.
    const std::string why = WhyNotUnix(UnixPath(address));
    if (!why.empty()) return tl::unexpected(why);
    const std::string lock = UnixPath(address) + ".lock";
    claim.fd_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (claim.fd_ < 0) return tl::unexpected("cannot lock " + lock + ": " + std::strerror(errno));
    if (flock(claim.fd_, LOCK_EX | LOCK_NB) != 0) return tl::unexpected(std::string(kTaken));
  }
  // Under the lock, so that no other server begins to listen after this.
  const std::string why = WhyNotListen(address);
  if (!why.empty()) return tl::unexpected(why);
  return claim;
}

AddressClaim::~AddressClaim() {
  if (fd_ >= 0) close(fd_);
}

std::string UnixPath(const std::string& address) {
  const std::string path = address.substr(std::strlen("unix:"));
  return path.starts_with("//") ? path.substr(2) : path;
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
