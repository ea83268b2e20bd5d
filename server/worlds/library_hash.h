// Hash of a library, so that clients tell servers with other builds of it apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace sap {

// SHA-256 of a file, read again if it has changed. An error: the reason. Thread-safe.
tl::expected<std::array<uint8_t, 32>, std::string> HashOfLibrary(const std::string& path);

}  // namespace sap
