// A small HTTP/1.1 server for probes and scrapes: GET and HEAD without a body, one request per
// connection.
//
// One thread polls all connections, so none of them waits for another. Connections are bounded in
// number, header size and time. Beyond their number the address that has most of them loses one,
// its oldest that has not sent its request if there is such a one, so that neither silent
// connections nor a flood of them from elsewhere keep a probe out.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tl/expected.hpp>

namespace sap {

class HttpServer {
 public:
  struct Response {
    int status;  // 200, 404, 503
    std::string body{};
    std::string content_type{"text/plain; charset=utf-8"};
  };
  // Answers GET and HEAD of a path, without its query. Called on the server's thread.
  using Handler = std::function<Response(std::string_view path)>;

  struct Limits {
    size_t connections{64};
    size_t header_bytes{8192};
    std::chrono::milliseconds duration{5000};  // of a connection, from its start to its end
  };

  // Serves from the return of this call on. Address: HOST:PORT.
  static tl::expected<std::unique_ptr<HttpServer>, std::string> Start(const std::string& address,
                                                                      Handler handler,
                                                                      const Limits& limits);
  ~HttpServer();

  int port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    int fd;
    std::string address;  // see address_identity.h
    Clock::time_point deadline;
    std::string received{};
    std::string answer{};
    size_t sent{0};
    bool answered{false};  // sent; waits for the peer to close
  };

  HttpServer(Handler handler, const Limits& limits)
      : handler_(std::move(handler)), limits_(limits) {}

  void Serve();
  void Accept();
  void EvictOne();
  // These return whether the connection continues.
  bool Continue(Connection* connection);
  bool Receive(Connection* connection);
  bool Send(Connection* connection);
  std::string Answer(const std::string& header) const;

  const Handler handler_;
  const Limits limits_;
  int listener_{-1};
  int wake_{-1};  // eventfd that ends the thread
  int port_{0};
  std::list<Connection> connections_;  // oldest first
  Clock::time_point next_accept_{};
  std::thread thread_;
};

}  // namespace sap
