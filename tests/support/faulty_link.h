// A TCP link to a server that can be cut or made to stand still, as networks do.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace sap::test {

// Forwards connections to an address of the loopback, "127.0.0.1:PORT", until it goes.
class FaultyLink {
 public:
  explicit FaultyLink(const std::string& server);
  ~FaultyLink();
  FaultyLink(const FaultyLink&) = delete;
  FaultyLink& operator=(const FaultyLink&) = delete;

  // What clients connect to.
  const std::string& address() const { return address_; }

  // Resets every connection that is there; new ones are made as before.
  void Cut();

  // While it stalls, no byte passes in either direction, and nobody is told.
  void Stall(bool stall) { stalled_ = stall; }

  int connections() const { return connections_; }  // made so far

 private:
  struct Connection {
    int client;
    int server;
    std::atomic<bool> cut{false};
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  void Accept();
  void Forward(Connection* connection) const;
  static bool Pass(int from, int to);

  std::string server_;
  std::string address_;
  int listener_{-1};
  std::atomic<bool> closing_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::list<Connection> all_;
  std::thread accepter_;
};

}  // namespace sap::test
