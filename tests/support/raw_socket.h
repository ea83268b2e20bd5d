// Bytes to and from a port of the loopback, as no well-behaved client sends them.
#pragma once

#include <string>

namespace sap::test {

class RawSocket {
 public:
  // Of "127.0.0.1:PORT". Whether it is open says connected().
  explicit RawSocket(const std::string& address);
  ~RawSocket();
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return fd_ >= 0; }

  // False: the peer has closed it.
  bool Send(const std::string& bytes) const;

  // What comes until the peer closes, or nothing has come for so long.
  std::string ReadAll(int patience_ms) const;

  // Whether the peer closes it within that time, whatever comes before.
  bool ClosedWithin(int patience_ms) const;

 private:
  int fd_{-1};
};

// What HTTP's GET answers, head and body.
std::string HttpGet(const std::string& address, const std::string& path);

}  // namespace sap::test
