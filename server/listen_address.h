// Listen addresses as text: HOST:PORT or unix:PATH.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sap {

// Whether only processes on this machine can connect: a Unix socket or the loopback interface.
bool IsLocal(const std::string& address);

// Why no server can listen on the address: another one does, even if it does not accept connections
// or lets this user connect, or the system's reason. Empty: nothing is known against it. gRPC
// unlinks an existing socket file before it binds, and so takes over the address of a running
// server; of a host with several addresses it takes those that are free, and it tells no reason.
std::string WhyNotListen(const std::string& address);

// Keeps an address from other servers that are starting, which WhyNotListen alone cannot: between
// its question and gRPC's bind another one may ask. For unix:PATH it is a lock on PATH.lock, which
// ends with the process; the file stays. A TCP address is given to one server by the kernel.
class AddressClaim {
 public:
  // Fails with WhyNotListen's reason, or if another server has the claim.
  static tl::expected<AddressClaim, std::string> Make(const std::string& address);

  AddressClaim(AddressClaim&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  AddressClaim& operator=(AddressClaim&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~AddressClaim();

 private:
  explicit AddressClaim(int fd) : fd_(fd) {}

  int fd_;  // of the lock; -1: none
};

// A socket that is bound to the first address of HOST:PORT that this machine has, or why there is
// none. One that another process listens on is an error, also if it is not the first.
tl::expected<int, std::string> BindTcp(const std::string& address);

// Replaces port 0 by the port that the kernel assigned.
std::string WithPort(const std::string& address, int port);

inline bool IsUnixSocket(const std::string& address) { return address.starts_with("unix:"); }

// The path of unix:PATH or unix://PATH.
std::string UnixPath(const std::string& address);

}  // namespace sap
