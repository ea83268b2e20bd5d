#include "server/auth/parse_entitlement.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace sap {
namespace {

// The whole text as a number in [least, most], or nothing.
template <typename Number>
std::optional<Number> NumberIn(std::string_view text, Number least, Number most) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  // Written so that NaN is refused.
  if (!(number >= least && number <= most)) return std::nullopt;
  return number;
}

std::optional<int64_t> Bytes(std::string_view text) {
  const int shift = text.ends_with("Ki")   ? 10
                    : text.ends_with("Mi") ? 20
                    : text.ends_with("Gi") ? 30
                                           : 0;
  if (shift > 0) text.remove_suffix(2);
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto number = NumberIn<int64_t>(text, 1, kMost >> shift);
  if (!number) return std::nullopt;
  return *number << shift;
}

std::optional<bool> IsHigh(std::string_view text) {
  if (text != "high" && text != "normal") return std::nullopt;
  return text == "high";
}

std::optional<bool> IsYes(std::string_view text) {
  if (text != "yes" && text != "no") return std::nullopt;
  return text == "yes";
}

// Longer keys do not appear in messages: the word may be a token with the padding of base64.
constexpr size_t kLongestKey = 15;

constexpr const char* kUnknownKey = "";

// Stores the value, or returns what was expected.
template <typename Value>
std::optional<std::string> Store(const std::optional<Value>& value, const char* expected,
                                 Value* target) {
  if (!value) return expected;
  *target = *value;
  return std::nullopt;
}

// Returns a description of the accepted values if `value` is invalid, kUnknownKey for an unknown
// key. Ranges are those of the flags.
std::optional<std::string> StoreAs(std::string_view key, std::string_view value, Entitlements* e) {
  if (key == "priority") return Store(IsHigh(value), "high or normal", &e->high_priority);
  if (key == "calls") {
    return Store(NumberIn(value, 1, 1'000'000), "a number in [1, 1000000]", &e->max_calls);
  }
  if (key == "bytes") {
    return Store(Bytes(value), "a number in [1, 1024Gi], as in 64Mi", &e->max_bytes);
  }
  if (key == "work-s") {
    return Store(NumberIn(value, 0.0, 1e9), "seconds in [0, 1e9]", &e->max_work_s);
  }
  if (key == "sessions") {
    return Store(NumberIn(value, 1, 1'000'000), "a number in [1, 1000000]", &e->max_sessions);
  }
  if (key == "solve-s") {
    return Store(NumberIn(value, 1e-3, 86'400.0), "seconds in [0.001, 86400]", &e->max_solve_s);
  }
  if (key == "rate") {
    return Store(NumberIn(value, 0.0, 1e9), "calls per second in [0, 1e9]", &e->max_calls_per_s);
  }
  if (key == "models") {
    return Store(Bytes(value), "a number in [1, 1024Gi], as in 64Mi", &e->max_model_bytes);
  }
  if (key == "worlds") return Store(IsYes(value), "yes or no", &e->worlds);
  return kUnknownKey;
}

}  // namespace

tl::expected<void, std::string> ParseEntitlement(std::string_view word,
                                                 Entitlements* entitlements) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    return tl::unexpected<std::string>("is not a name, a token and words key=value");
  }
  const std::string_view key = word.substr(0, equals);
  const auto expected = StoreAs(key, word.substr(equals + 1), entitlements);
  if (!expected) return {};
  if (*expected == kUnknownKey) {
    std::string error = "has the unknown key";
    if (key.size() <= kLongestKey) error.append(" ").append(key);
    return tl::unexpected(
        error.append("; the keys are priority, calls, bytes, work-s, sessions, solve-s, rate, "
                     "models, worlds"));
  }
  return tl::unexpected("has a value of " + std::string(key) + " that is not " + *expected);
}

}  // namespace sap
