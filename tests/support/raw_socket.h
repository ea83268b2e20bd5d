// A TCP socket to a loopback port, for byte sequences that no well-behaved client sends.
#pragma once

#include <string>

namespace sap::test {

class RawSocket {
 public:
  // To "127.0.0.1:PORT", from an address of the loopback. Whether it is open says connected().
  explicit RawSocket(const std::string& address, const char* source = "127.0.0.1");
  ~RawSocket();
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return fd_ >= 0; }

  // False: the peer has closed it.
  bool Send(const std::string& bytes) const;

  // The bytes received until the peer closes, or until none arrive for this long.
  std::string ReadAll(int patience_ms) const;

  // Whether the peer closes the connection within that time. Discards what it sends before.
  bool ClosedWithin(int patience_ms) const;

 private:
  int fd_{-1};
};

// The response to an HTTP GET, header and body.
std::string HttpGet(const std::string& address, const std::string& path);

}  // namespace sap::test
