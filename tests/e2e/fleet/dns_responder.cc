#include "tests/e2e/fleet/dns_responder.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace sap::test {
namespace {

constexpr size_t kHeader = 12;
constexpr int kPoll_ms = 20;

std::string Bytes16(int value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

}  // namespace

DnsResponder::DnsResponder(std::vector<std::string> addresses)
    : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), addresses_(std::move(addresses)) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), length), 0);
  EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length), 0);
  address_ = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  thread_ = std::thread([this] { Serve(); });
}

DnsResponder::~DnsResponder() {
  closing_ = true;
  thread_.join();
  close(fd_);
}

void DnsResponder::SetAddresses(std::vector<std::string> addresses) {
  const std::lock_guard lock(mutex_);
  addresses_ = std::move(addresses);
}

void DnsResponder::Serve() {
  while (!closing_) {
    pollfd waiting{fd_, POLLIN, 0};
    if (poll(&waiting, 1, kPoll_ms) <= 0) continue;
    std::array<char, 512> bytes;
    sockaddr_in client{};
    socklen_t length = sizeof client;
    const ssize_t got =
        recvfrom(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&client), &length);
    if (got <= static_cast<ssize_t>(kHeader)) continue;
    const std::string answer = Answer({bytes.data(), static_cast<size_t>(got)});
    sendto(fd_, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&client), length);
  }
}

// Header, question and records [RFC 1035, section 4]. Types other than A have no records.
std::string DnsResponder::Answer(const std::string& query) {
  const size_t end_of_name = query.find('\0', kHeader);
  if (end_of_name == std::string::npos || end_of_name + 5 > query.size()) return "";
  const std::string question = query.substr(kHeader, end_of_name + 5 - kHeader);
  const bool is_a = query[end_of_name + 1] == 0 && query[end_of_name + 2] == 1;
  const std::lock_guard lock(mutex_);
  const int count = is_a ? static_cast<int>(addresses_.size()) : 0;
  // A response with authority to a query with recursion desired and available; no error.
  std::string answer = query.substr(0, 2) + "\x85" + "\x80" + Bytes16(1) + Bytes16(count) +
                       Bytes16(0) + Bytes16(0) + question;
  for (int i = 0; i < count; ++i) {
    in_addr parsed{};
    inet_pton(AF_INET, addresses_[i].c_str(), &parsed);
    // The name is that at offset 12; type A, class IN, to be kept for 0 s, 4 bytes.
    answer += "\xc0\x0c" + Bytes16(1) + Bytes16(1) + Bytes16(0) + Bytes16(0) + Bytes16(4) +
              std::string(reinterpret_cast<const char*>(&parsed), sizeof parsed);
  }
  return answer;
}

}  // namespace sap::test
