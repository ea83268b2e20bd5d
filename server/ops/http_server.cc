#include "server/ops/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "server/auth/address_identity.h"
#include "server/listen_address.h"

namespace sap {
namespace {

// Precision of the deadlines, and the wait after a failed accept: without descriptors the listener
// stays readable.
constexpr std::chrono::milliseconds kTick{100};

const char* Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Unknown";
  }
}

std::string Text(const HttpServer::Response& response, const std::string& header = "") {
  return "HTTP/1.1 " + std::to_string(response.status) + " " + Reason(response.status) +
         "\r\nContent-Type: " + response.content_type +
         "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n" + header +
         "Connection: close\r\n\r\n" + response.body;
}

// Without the body, for HEAD.
std::string HeaderOf(const std::string& text) { return text.substr(0, text.find("\r\n\r\n") + 4); }

std::string IdentityOf(const sockaddr_storage& name) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  const bool is_v6 = name.ss_family == AF_INET6;
  const void* const address =
      is_v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&name)->sin6_addr)
            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&name)->sin_addr);
  inet_ntop(name.ss_family, address, host.data(), host.size());
  return AddressIdentity(is_v6 ? "ipv6:[" + std::string(host.data()) + "]:0"
                               : "ipv4:" + std::string(host.data()) + ":0");
}

int PortOf(int fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  // The port has the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

bool IsRetryable(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

tl::expected<std::unique_ptr<HttpServer>, std::string> HttpServer::Start(const std::string& address,
                                                                         Handler handler,
                                                                         const Limits& limits) {
  const auto listener = BindTcp(address);
  if (!listener) {
    return tl::unexpected("cannot listen on " + address + ": " + listener.error());
  }
  std::unique_ptr<HttpServer> self(new HttpServer(std::move(handler), limits));
  self->listener_ = *listener;
  if (listen(*listener, SOMAXCONN) != 0) {
    return tl::unexpected("cannot listen on " + address + ": " + std::strerror(errno));
  }
  self->port_ = PortOf(*listener);
  self->wake_ = eventfd(0, EFD_CLOEXEC);
  if (self->wake_ < 0) return tl::unexpected("cannot serve HTTP: " + std::string(strerror(errno)));
  self->thread_ = std::thread([server = self.get()] { server->Serve(); });
  return self;
}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  for (const Connection& connection : connections_) close(connection.fd);
  if (listener_ >= 0) close(listener_);
  if (wake_ >= 0) close(wake_);
}

void HttpServer::Serve() {
  std::vector<pollfd> polled;
  for (;;) {
    const bool accepting = Clock::now() >= next_accept_;
    polled = {{wake_, POLLIN, 0}, {listener_, static_cast<short>(accepting ? POLLIN : 0), 0}};
    for (const Connection& connection : connections_) {
      const bool sending = connection.sent < connection.answer.size();
      polled.push_back({connection.fd, static_cast<short>(sending ? POLLOUT : POLLIN), 0});
    }
    const bool waits_for_peers = accepting && connections_.empty();
    poll(polled.data(), polled.size(), waits_for_peers ? -1 : static_cast<int>(kTick.count()));
    if (polled[0].revents != 0) return;
    const auto now = Clock::now();
    auto event = polled.begin() + 2;
    for (auto connection = connections_.begin(); connection != connections_.end(); ++event) {
      const bool ready = event->revents != 0;
      if (now < connection->deadline && (!ready || Continue(&*connection))) {
        ++connection;
      } else {
        close(connection->fd);
        connection = connections_.erase(connection);
      }
    }
    if (polled[1].revents != 0) Accept();
  }
}

void HttpServer::Accept() {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  const int fd =
      accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (!IsRetryable(errno)) next_accept_ = Clock::now() + kTick;
    return;
  }
  if (connections_.size() >= limits_.connections) EvictOne();
  connections_.push_back(
      {.fd = fd, .address = IdentityOf(peer), .deadline = Clock::now() + limits_.duration});
}

void HttpServer::EvictOne() {
  std::map<std::string_view, int> counts;
  for (const Connection& connection : connections_) ++counts[connection.address];
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& address_and_count) { return address_and_count.second; });
  // Oldest first; one that has not sent its request before one that waits for its answer.
  auto evicted = connections_.end();
  for (auto one = connections_.begin(); one != connections_.end(); ++one) {
    if (one->address != most->first) continue;
    if (evicted == connections_.end()) evicted = one;
    if (!one->answer.empty()) continue;
    evicted = one;
    break;
  }
  close(evicted->fd);
  connections_.erase(evicted);
}

bool HttpServer::Continue(Connection* connection) {
  if (connection->sent < connection->answer.size()) return Send(connection);
  return Receive(connection);
}

bool HttpServer::Receive(Connection* connection) {
  std::array<char, 4096> bytes;
  const ssize_t count = recv(connection->fd, bytes.data(), bytes.size(), 0);
  if (count < 0) return IsRetryable(errno);
  if (count == 0) return false;
  // The rest of what the peer sends is discarded: data left unread at the close would reset the
  // connection, and the peer might lose the answer.
  if (connection->answered) return true;
  std::string& received = connection->received;
  received.append(bytes.data(), static_cast<size_t>(count));
  const size_t end = received.find("\r\n\r\n");
  if (end != std::string::npos && end <= limits_.header_bytes) {
    connection->answer = Answer(received.substr(0, end));
  } else if (received.size() > limits_.header_bytes) {
    connection->answer = Text({431});
  } else {
    return true;
  }
  return Send(connection);
}

bool HttpServer::Send(Connection* connection) {
  std::string_view rest(connection->answer);
  rest.remove_prefix(connection->sent);
  const ssize_t count = send(connection->fd, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count < 0) return IsRetryable(errno);
  connection->sent += static_cast<size_t>(count);
  if (connection->sent == connection->answer.size()) {
    connection->answered = true;
    shutdown(connection->fd, SHUT_WR);
  }
  return true;
}

std::string HttpServer::Answer(const std::string& header) const {
  std::string_view line(header);
  line = line.substr(0, line.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      !line.substr(first).starts_with(" /") || !line.substr(second).starts_with(" HTTP/1.")) {
    return Text({400});
  }
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return Text({405}, "Allow: GET, HEAD\r\n");
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string text = Text(handler_(target.substr(0, target.find('?'))));
  return method == "GET" ? text : HeaderOf(text);
}

}  // namespace sap
