#include "tests/support/faulty_link.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace sap::test {
namespace {

constexpr int kPoll_ms = 5;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int Connect(const std::string& server) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(std::stoi(server.substr(server.rfind(':') + 1)));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Closes with a reset instead of an orderly end.
void Reset(int fd) {
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd);
}

void SendAtOnce(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

FaultyLink::FaultyLink(const std::string& server) : server_(server) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  bind(listener_, reinterpret_cast<const sockaddr*>(&address), size);
  listen(listener_, 128);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  accepter_ = std::thread([this] { Accept(); });
}

FaultyLink::~FaultyLink() {
  closing_ = true;
  accepter_.join();
  Cut();
  for (Connection& connection : all_) connection.thread.join();
  close(listener_);
}

void FaultyLink::Cut() {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : all_) connection.cut = true;
}

std::string FaultyLink::Server() {
  const std::lock_guard lock(mutex_);
  return server_;
}

void FaultyLink::Redirect(const std::string& server) {
  const std::lock_guard lock(mutex_);
  server_ = server;
}

void FaultyLink::Accept() {
  while (!closing_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, kPoll_ms) <= 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = Connect(Server());
    if (server < 0) {
      Reset(client);
      continue;
    }
    SendAtOnce(client);
    SendAtOnce(server);
    ++connections_;
    const std::lock_guard lock(mutex_);
    // Connections that have ended are forgotten here, so that a long test does not gather threads.
    for (auto old = all_.begin(); old != all_.end();) {
      if (!old->ended) {
        ++old;
        continue;
      }
      old->thread.join();
      old = all_.erase(old);
    }
    Connection& connection = all_.emplace_back();
    connection.client = client;
    connection.server = server;
    connection.thread = std::thread([this, &connection] { Forward(&connection); });
  }
}

void FaultyLink::Forward(Connection* connection) const {
  pollfd ends[2] = {{connection->client, POLLIN, 0}, {connection->server, POLLIN, 0}};
  bool open = true;
  while (open && !connection->cut) {
    if (stalled_) {
      poll(nullptr, 0, kPoll_ms);
      continue;
    }
    if (poll(ends, 2, kPoll_ms) <= 0) continue;
    if (delay_ms_ > 0) poll(nullptr, 0, delay_ms_);
    if (stalled_ || connection->cut) continue;
    if (ends[0].revents != 0) open = Pass(connection->client, connection->server);
    if (open && ends[1].revents != 0) open = Pass(connection->server, connection->client);
  }
  Reset(connection->client);
  Reset(connection->server);
  connection->ended = true;
}

bool FaultyLink::Pass(int from, int to) {
  std::array<char, 1 << 16> bytes;
  const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t now = send(to, bytes.data() + sent, got - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += now;
  }
  return true;
}

}  // namespace sap::test
