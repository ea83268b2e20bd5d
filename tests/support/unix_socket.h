// A connection to a Unix socket that waits for nothing.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace sap::test {

class UnixSocket {
 public:
  explicit UnixSocket(const std::filesystem::path& path)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.string().copy(name.sun_path, sizeof name.sun_path - 1);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  }
  ~UnixSocket() { close(fd_); }
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  // False also where the listener has as many connections as it lets wait.
  bool connected() const { return connected_; }

 private:
  const int fd_;
  bool connected_{false};
};

}  // namespace sap::test
