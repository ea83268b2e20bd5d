// Takes structs of a caller of the C interface in the size that both sides know. Internal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "client/c/struct_reader.h"

namespace sap::c {

// No struct of a caller is larger; a larger size was never set.
inline constexpr size_t kLargestStruct = 1 << 16;

inline tl::unexpected<ProblemError> Refuse(std::string field, std::string reason) {
  return tl::unexpected(ProblemError{std::move(field), -1, std::move(reason)});
}

// Takes structs and arrays of one message, and remembers the first that is at fault.
class StructReader {
 public:
  explicit StructReader(std::string within = "") : within_(std::move(within)) {}

  // The struct as this library knows it; null: the empty one. `name` is "contacts.", or "" for the
  // message itself.
  template <typename Struct>
  Struct Take(const Struct* given, const char* name) {
    Struct taken{};
    if (given == nullptr) return taken;
    const size_t size = given->struct_size;
    if (size < sizeof(size_t) || size > kLargestStruct || size % alignof(Struct) != 0) {
      Fail(std::string(name) + "struct_size", "is " + std::to_string(size) +
                                                  "; it must be the size of the struct, " +
                                                  std::to_string(sizeof(Struct)));
      return taken;
    }
    std::memcpy(&taken, given, std::min(size, sizeof(Struct)));
    const auto* bytes = reinterpret_cast<const std::byte*>(given);
    const bool known = std::all_of(bytes + std::min(size, sizeof(Struct)), bytes + size,
                                   [](std::byte byte) { return byte == std::byte{0}; });
    if (!known) {
      Fail(std::string(name) + "struct_size",
           "is " + std::to_string(size) + "; this version knows the first " +
               std::to_string(sizeof(Struct)) + " bytes, and the others are not 0");
    }
    return taken;
  }

  // An array of a struct that was taken.
  template <typename Struct, typename Array>
  auto Span(const Struct& taken, const Array& array, std::string_view group,
            std::string_view name) {
    using Value = std::remove_pointer_t<decltype(array.data)>;
    const size_t begin =
        reinterpret_cast<const std::byte*>(&array) - reinterpret_cast<const std::byte*>(&taken);
    if (begin < taken.struct_size && taken.struct_size < begin + sizeof array) {
      Fail(std::string(group) + std::string(name),
           "is cut by the struct_size, which is " + std::to_string(taken.struct_size));
    }
    if (array.length == 0) return std::span<Value>();
    if (array.length < 0 || array.data == nullptr) {
      Fail(std::string(group) + std::string(name), "has " + std::to_string(array.length) +
                                                       " values" +
                                                       (array.data == nullptr ? " at NULL" : ""));
      return std::span<Value>();
    }
    return std::span<Value>(array.data, static_cast<size_t>(array.length));
  }

  void Fail(std::string field, std::string reason) {
    if (!error_) error_ = ProblemError{within_ + field, -1, std::move(reason)};
  }

  template <typename Value>
  Read<Value> Result(Value value) {
    if (error_) return tl::unexpected(*std::move(error_));
    return value;
  }

 private:
  const std::string within_;
  std::optional<ProblemError> error_;
};

}  // namespace sap::c
