#include "server/ops/trace_parent.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace sap {
namespace {

constexpr size_t kTrace = 3;
constexpr size_t kSpan = 36;
constexpr size_t kFlags = 53;
constexpr size_t kLength = 55;
constexpr uint8_t kSampled = 1;

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Fills the bytes from twice as many digits. False: there is something else.
bool ReadBytes(std::string_view digits, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = DigitOf(digits[2 * i]);
    const int low = DigitOf(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(16 * high + low);
  }
  return true;
}

bool IsZero(std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

std::optional<TraceParent> SampledParent(std::string_view text) {
  const bool is_first_version = text.starts_with("00");
  if (text.size() < kLength || text.starts_with("ff")) return std::nullopt;
  if (text.size() > kLength && (is_first_version || text[kLength] != '-')) return std::nullopt;
  if (text[kTrace - 1] != '-' || text[kSpan - 1] != '-' || text[kFlags - 1] != '-') {
    return std::nullopt;
  }
  TraceParent parent;
  std::array<uint8_t, 1> version, flags;
  const bool is_read =
      ReadBytes(text, version) && ReadBytes(text.substr(kTrace), parent.trace_id) &&
      ReadBytes(text.substr(kSpan), parent.span_id) && ReadBytes(text.substr(kFlags), flags);
  if (!is_read || IsZero(parent.trace_id) || IsZero(parent.span_id)) return std::nullopt;
  if ((flags[0] & kSampled) == 0) return std::nullopt;
  return parent;
}

}  // namespace sap
