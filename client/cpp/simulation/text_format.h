// Text by the rules of printf, of at most 511 characters.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace sap::simulation {

inline std::string Format(const char* format, auto... values) {
  std::array<char, 512> text;
  const int length = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), static_cast<size_t>(std::clamp(length, 0, 511))};
}

}  // namespace sap::simulation
