#include "tests/support/raw_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace sap::test {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

RawSocket::RawSocket(const std::string& address, const char* source) {
  const size_t colon = address.rfind(':');
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  EXPECT_EQ(inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr), 1) << address;
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  inet_pton(AF_INET, source, &from.sin_addr);
  const bool bound = bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0;
  if (bound && connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return;
  close(fd_);
  fd_ = -1;
}

RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

bool RawSocket::Send(const std::string& bytes) const {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

std::string RawSocket::ReadAll(int patience_ms) const {
  std::string all;
  std::array<char, 4096> bytes;
  pollfd waiting{fd_, POLLIN, 0};
  while (poll(&waiting, 1, patience_ms) > 0) {
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    all.append(bytes.data(), static_cast<size_t>(got));
  }
  return all;
}

bool RawSocket::ClosedWithin(int patience_ms) const {
  const auto until = Clock::now() + std::chrono::milliseconds(patience_ms);
  std::array<char, 4096> bytes;
  while (Clock::now() < until) {
    pollfd waiting{fd_, POLLIN, 0};
    if (poll(&waiting, 1, std::min(20, patience_ms)) > 0 &&
        recv(fd_, bytes.data(), bytes.size(), 0) <= 0)
      return true;
  }
  return false;
}

std::string HttpGet(const std::string& address, const std::string& path) {
  const RawSocket socket(address);
  if (!socket.connected()) return "";
  socket.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return socket.ReadAll(300'000);
}

}  // namespace sap::test
