// What this build is: bits of answers agree between builds of equal version and instruction set.
#pragma once

namespace sap {

// SAP_VERSION is defined by the build, as in "0.1.0".

constexpr const char* InstructionSet() {
#if defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
  return "x86-64-v3";
#elif defined(__x86_64__)
  return "x86-64";
#else
  return "portable";
#endif
}

}  // namespace sap
