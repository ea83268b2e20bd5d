// Units that are powers of two: numbers are divided by them exactly, and bits of answers do not
// depend on the unit that a client chose.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace sap {

// The largest power of two that is not above |x|, of those whose inverse is a normal number, too.
inline double PowerOfTwoBelow(double x) {
  constexpr uint64_t kExponent = uint64_t{0x7FF} << 52;
  const auto power = std::bit_cast<double>(std::bit_cast<uint64_t>(x) & kExponent);
  return std::clamp(power, 0x1p-1000, 0x1p1000);
}

}  // namespace sap
