// Heap memory that objects keep, for those who account for it.
//
// A class with arrays has a member storage_bytes(), which names them all:
//
//   size_t storage_bytes() const { return StorageBytes(order_, groups_, layout_); }
//
// An array that it leaves out is missing in every account:
// tests/solver/engine/storage_bytes_test compares the sum for a solver with what it has allocated.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace sap {

// Bytes of the arrays of each object, by their capacity, and of all that their elements keep.
// Arrays, tuples, vectors, pointers that own, optionals, and classes with storage_bytes().
template <typename... Objects>
size_t StorageBytes(const Objects&... objects);

namespace detail {

template <typename Object>
size_t StorageOf(const Object& object) {
  if constexpr (std::is_trivially_destructible_v<Object>) {
    return 0;
  } else if constexpr (requires { object.storage_bytes(); }) {
    return object.storage_bytes();
  } else if constexpr (requires { std::tuple_size<Object>::value; }) {
    return std::apply([](const auto&... members) { return StorageBytes(members...); }, object);
  } else if constexpr (requires { object.capacity(); }) {
    using Element = typename Object::value_type;
    // An array of one: where elements are pointers, their size is meant, not that of an object.
    size_t bytes = object.capacity() * sizeof(std::array<Element, 1>);
    if constexpr (!std::is_trivially_destructible_v<Element>) {
      for (const Element& element : object) bytes += StorageOf(element);
    }
    return bytes;
  } else if constexpr (requires { object.get(); }) {
    return object == nullptr ? 0 : sizeof(*object) + StorageOf(*object);
  } else {
    return object.has_value() ? StorageOf(*object) : 0;
  }
}

}  // namespace detail

template <typename... Objects>
size_t StorageBytes(const Objects&... objects) {
  return (size_t{0} + ... + detail::StorageOf(objects));
}

}  // namespace sap
