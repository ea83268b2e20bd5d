#include "tests/e2e/hostile/http2_connection.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace sap::test::hostile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEndStream = 1, kAcknowledge = 1, kEndHeaders = 4;
constexpr size_t kFrameHeader = 9;
constexpr size_t kLargestFrame = 16'384;
constexpr int kInitialWindowSetting = 4;
constexpr std::chrono::microseconds kSocketTimeout{300'000};

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

uint32_t ReadBigEndian(std::string_view text) {
  uint32_t value = 0;
  for (const char c : text) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

// A string of HPACK: its length, with a prefix of 7 bits, and its bytes.
std::string Literal(std::string_view text) {
  std::string literal;
  size_t rest = text.size();
  literal += static_cast<char>(std::min<size_t>(rest, 127));
  if (rest >= 127) {
    for (rest -= 127; rest >= 128; rest /= 128) literal += static_cast<char>(128 + rest % 128);
    literal += static_cast<char>(rest);
  }
  return literal.append(text);
}

int ConnectFrom(uint32_t source, const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const timeval patience{.tv_sec = 0, .tv_usec = kSocketTimeout.count()};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(source);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (bound && connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Wire::Wire(const Target& target, bool handshake) : fd_(ConnectFrom(target.source, target.address)) {
  if (!open() || !handshake || target.server_ca.empty()) return;
  context_.reset(SSL_CTX_new(TLS_client_method()));
  ssl_.reset(SSL_new(context_.get()));
  constexpr std::array<unsigned char, 3> kProtocols{2, 'h', '2'};
  SSL_set_alpn_protos(ssl_.get(), kProtocols.data(), kProtocols.size());
  SSL_set_fd(ssl_.get(), fd_);
  if (SSL_connect(ssl_.get()) != 1) Close();
}

Wire::~Wire() { Close(); }

void Wire::Close() {
  if (open()) close(fd_);
  fd_ = -1;
}

bool Wire::Send(std::string_view bytes) {
  while (open() && !bytes.empty()) {
    const int size = static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20));
    const ssize_t sent = ssl_ != nullptr
                             ? SSL_write(ssl_.get(), bytes.data(), size)
                             : send(fd_, bytes.data(), static_cast<size_t>(size), MSG_NOSIGNAL);
    if (sent <= 0) Close();
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return open();
}

std::string Wire::Receive(int patience_ms) {
  if (!open()) return "";
  const bool buffered = ssl_ != nullptr && SSL_pending(ssl_.get()) > 0;
  pollfd waiting{fd_, POLLIN, 0};
  if (!buffered && poll(&waiting, 1, patience_ms) <= 0) return "";
  std::array<char, 16'384> bytes;
  const ssize_t got = ssl_ != nullptr
                          ? SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                          : recv(fd_, bytes.data(), bytes.size(), 0);
  if (got <= 0) Close();
  return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

std::string Frame(FrameType type, int flags, int stream, std::string_view payload) {
  std::string frame = BigEndian(static_cast<uint32_t>(payload.size()), 3);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame.append(BigEndian(static_cast<uint32_t>(stream), 4)).append(payload);
}

std::string Preface(uint32_t receive_window) {
  const std::string setting =
      BigEndian(kInitialWindowSetting, 2).append(BigEndian(receive_window, 4));
  return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").append(Frame(kSettings, 0, 0, setting));
}

std::string CallHeaders(const Target& target, std::string_view method, std::string_view encoding) {
  // :method POST, :scheme, :path, :authority, content-type, te.
  std::string headers(target.server_ca.empty() ? "\x83\x86" : "\x83\x87");
  const auto add = [&headers](std::string_view name, std::string_view value) {
    headers.append(name).append(Literal(value));
  };
  add("\x04", method);
  add("\x01", "localhost");
  add("\x0f\x10", "application/grpc");
  add(std::string_view("\0\2te", 4), "trailers");
  add(std::string_view("\0\15grpc-encoding", 15), encoding);
  if (!target.token.empty()) {
    add(std::string_view("\0\15authorization", 15), "Bearer " + target.token);
  }
  return headers;
}

std::string Header(std::string_view name, std::string_view value) {
  return std::string(1, '\0').append(Literal(name)).append(Literal(value));
}

std::string MessagePrefix(size_t length, bool compressed) {
  std::string prefix(1, compressed ? '\1' : '\0');
  return prefix.append(BigEndian(static_cast<uint32_t>(length), 4));
}

Http2Connection::Http2Connection(const Target& target, uint32_t receive_window)
    : target_(target), wire_(target) {
  wire_.Send(Preface(receive_window));
  Receive(1000);
}

int Http2Connection::Begin(std::string_view method, std::string_view encoding,
                           std::string_view more_headers) {
  last_stream_ += 2;
  windows_[last_stream_] = initial_window_;
  wire_.Send(Frame(kHeaders, kEndHeaders, last_stream_,
                   CallHeaders(target_, method, encoding).append(more_headers)));
  return last_stream_;
}

bool Http2Connection::Send(int stream, std::string_view bytes) {
  while (!bytes.empty()) {
    Receive();
    if (!WaitForWindow(stream)) return false;
    const size_t size =
        std::min({bytes.size(), kLargestFrame, static_cast<size_t>(windows_[stream]),
                  static_cast<size_t>(connection_window_)});
    if (!wire_.Send(Frame(kData, 0, stream, bytes.substr(0, size)))) return false;
    bytes.remove_prefix(size);
    windows_[stream] -= static_cast<int64_t>(size);
    connection_window_ -= static_cast<int64_t>(size);
  }
  return true;
}

bool Http2Connection::WaitForWindow(int stream) {
  const auto until = Clock::now() + kSocketTimeout;
  while (open() && !Ended(stream)) {
    if (windows_[stream] > 0 && connection_window_ > 0) return true;
    if (Clock::now() > until) return false;
    Receive(10);
  }
  return false;
}

void Http2Connection::Receive(int patience_ms) {
  for (std::string some = wire_.Receive(patience_ms); !some.empty(); some = wire_.Receive(0)) {
    received_ += some;
  }
  std::string_view rest = received_;
  while (rest.size() >= kFrameHeader) {
    const size_t length = ReadBigEndian(rest.substr(0, 3));
    if (rest.size() < kFrameHeader + length) break;
    Take(static_cast<FrameType>(rest[3]), rest[4],
         static_cast<int>(ReadBigEndian(rest.substr(5, 4))), rest.substr(kFrameHeader, length));
    rest.remove_prefix(kFrameHeader + length);
  }
  received_.erase(0, received_.size() - rest.size());
}

void Http2Connection::Take(FrameType type, int flags, int stream, std::string_view payload) {
  const bool acknowledgement = (flags & kAcknowledge) != 0;
  if (type == kSettings && !acknowledgement) {
    TakeSettings(payload);
  } else if (type == kPing && !acknowledgement) {
    wire_.Send(Frame(kPing, kAcknowledge, 0, payload));
  } else if (type == kWindowUpdate && stream == 0) {
    connection_window_ += ReadBigEndian(payload);
  } else if (type == kWindowUpdate && !Ended(stream)) {
    windows_[stream] += ReadBigEndian(payload);
  } else if (type == kReset || ((type == kHeaders || type == kData) && (flags & kEndStream) != 0)) {
    windows_.erase(stream);
  }
}

void Http2Connection::TakeSettings(std::string_view payload) {
  for (; payload.size() >= 6; payload.remove_prefix(6)) {
    if (ReadBigEndian(payload.substr(0, 2)) != kInitialWindowSetting) continue;
    const int64_t window = ReadBigEndian(payload.substr(2, 4));
    for (auto& [stream, left] : windows_) left += window - initial_window_;
    initial_window_ = window;
  }
  wire_.Send(Frame(kSettings, kAcknowledge, 0, ""));
}

}  // namespace sap::test::hostile
