// A DNS server on the loopback that knows one set of IPv4 addresses, whatever the name.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sap::test {

class DnsResponder {
 public:
  explicit DnsResponder(std::vector<std::string> addresses);
  ~DnsResponder();
  DnsResponder(const DnsResponder&) = delete;
  DnsResponder& operator=(const DnsResponder&) = delete;

  // HOST:PORT of this DNS server, as in dns://HOST:PORT/NAME.
  const std::string& address() const { return address_; }

  void SetAddresses(std::vector<std::string> addresses);

 private:
  void Serve();
  std::string Answer(const std::string& query);

  int fd_;
  std::string address_;
  std::mutex mutex_;
  std::vector<std::string> addresses_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace sap::test
