// A TCP proxy in front of a server, with the faults of networks: resets, stalls and delays.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace sap::test {

// Forwards connections to a loopback address, "127.0.0.1:PORT", until it is destroyed.
class FaultyLink {
 public:
  explicit FaultyLink(const std::string& server);
  ~FaultyLink();
  FaultyLink(const FaultyLink&) = delete;
  FaultyLink& operator=(const FaultyLink&) = delete;

  // The address that clients connect to.
  const std::string& address() const { return address_; }

  // Resets all current connections; new ones are accepted as before.
  void Cut();

  // Forwards new connections to another server. Current ones stay as they are.
  void Redirect(const std::string& server);

  // While it stalls, no byte passes in either direction and no connection is closed.
  void Stall(bool stall) { stalled_ = stall; }

  // Every piece of bytes is passed on so much later, and the next one is read after that.
  void Delay(std::chrono::milliseconds delay) { delay_ms_ = static_cast<int>(delay.count()); }

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
  std::string Server();
  void Forward(Connection* connection) const;
  static bool Pass(int from, int to);

  std::string address_;
  int listener_{-1};
  std::atomic<bool> closing_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<int> delay_ms_{0};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::string server_;
  std::list<Connection> all_;
  std::thread accepter_;
};

}  // namespace sap::test
