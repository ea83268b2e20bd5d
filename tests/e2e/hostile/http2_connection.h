// A client of HTTP/2 that does not have to behave: calls that are begun and not finished, answers
// that are not read, floods of frames.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tests/e2e/hostile/target.h"

namespace sap::test::hostile {

// A connection to a loopback port, with TLS if the target has it. It comes from 127.0.0.2, since
// limits by address should not meet the well-behaved clients.
class Wire {
 public:
  // With `handshake` false no byte of TLS is sent.
  explicit Wire(const Target& target, bool handshake = true);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool open() const { return fd_ >= 0; }

  // False, and closed: the peer has closed it, or has taken nothing for some time.
  bool Send(std::string_view bytes);

  // Returns the bytes that have arrived, after waiting at most this long. Empty: none have.
  std::string Receive(int patience_ms);

 private:
  void Close();

  int fd_{-1};
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
};

enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
};

// A frame as RFC 9113 has it.
std::string Frame(FrameType type, int flags, int stream, std::string_view payload);

// The beginning of a connection: the preface, and a setting of the window for each answer.
std::string Preface(uint32_t receive_window);

// The headers of a call, as literals [RFC 7541].
std::string CallHeaders(const Target& target, std::string_view method,
                        std::string_view encoding = "identity");

// A header as a literal; the value has less than 16 kB.
std::string Header(std::string_view name, std::string_view value);

// The prefix of a message of `length` bytes.
std::string MessagePrefix(size_t length, bool compressed = false);

class Http2Connection {
 public:
  // The server may send `receive_window` bytes of each answer, and no more.
  explicit Http2Connection(const Target& target, uint32_t receive_window = 65'535);

  bool open() const { return wire_.open(); }

  // Begins a call and returns its stream. More headers are as RFC 7541 has them.
  int Begin(std::string_view method, std::string_view encoding = "identity",
            std::string_view more_headers = "");

  // Calls that the server has not ended.
  size_t calls() const { return windows_.size(); }

  // Sends bytes of its message as the windows of the server allow. False: the server has ended the
  // call, or has opened no window for some time.
  bool Send(int stream, std::string_view bytes);

  // Reads what has arrived, and answers settings and pings.
  void Receive(int patience_ms = 0);

 private:
  static constexpr int64_t kDefaultWindow = 65'535;

  void Take(FrameType type, int flags, int stream, std::string_view payload);
  void TakeSettings(std::string_view payload);
  bool WaitForWindow(int stream);
  bool Ended(int stream) const { return !windows_.contains(stream); }

  const Target target_;
  Wire wire_;
  std::string received_;
  int last_stream_{-1};
  int64_t initial_window_{kDefaultWindow};
  int64_t connection_window_{kDefaultWindow};
  std::map<int, int64_t> windows_;  // of the calls that the server has not ended
};

}  // namespace sap::test::hostile
