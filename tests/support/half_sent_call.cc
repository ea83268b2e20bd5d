#include "tests/support/half_sent_call.h"

namespace sap::test {
namespace {

enum FrameType : uint8_t { kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kWindow = 8 };
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr size_t kFrameHeader = 9;
constexpr int kQuiet_ms = 10;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return BigEndian(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + BigEndian(stream, 4) + payload;
}

// Prefix of a message of `bytes` bytes, not compressed.
std::string Prefix(uint32_t bytes) { return BigEndian(0, 1).append(BigEndian(bytes, 4)); }

// HPACK: a literal that is not indexed, with a name of its own.
std::string Header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

}  // namespace

HalfSentCall::HalfSentCall(const std::string& address, const std::string& path, uint32_t announced,
                           size_t sent, const std::string& first)
    : socket_(address) {
  const std::string headers = Header(":method", "POST") + Header(":scheme", "http") +
                              Header(":path", path) + Header(":authority", "localhost") +
                              Header("te", "trailers") + Header("content-type", "application/grpc");
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "") +
                      Frame(kHeaders, kEndHeaders, 1, headers);
  std::string message;
  if (!first.empty()) message.append(Prefix(static_cast<uint32_t>(first.size()))).append(first);
  message.append(Prefix(announced)).append(sent, '\n');
  constexpr size_t kLargestFrame = 16'384;
  for (size_t i = 0; i < message.size(); i += kLargestFrame) {
    bytes += Frame(kData, 0, 1, message.substr(i, kLargestFrame));
  }
  socket_.Send(bytes);
}

bool HalfSentCall::Ended() {
  Receive();
  return ended_;
}

bool HalfSentCall::WindowOpened() {
  Receive();
  return window_opened_;
}

void HalfSentCall::Receive() {
  received_ += socket_.ReadAll(kQuiet_ms);
  const auto byte = [this](size_t i) { return static_cast<uint8_t>(received_[i]); };
  while (received_.size() >= kFrameHeader) {
    const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (received_.size() < kFrameHeader + length) return;
    const uint8_t type = byte(3);
    const bool own = byte(8) == 1;
    const bool last = (type == kHeaders || type == kData) && (byte(4) & kEndStream) != 0;
    ended_ |= own && (type == kRstStream || last);
    if (own && last && type == kHeaders) trailers_ = received_.substr(kFrameHeader, length);
    window_opened_ |= own && type == kWindow;
    received_.erase(0, kFrameHeader + length);
  }
}

}  // namespace sap::test
