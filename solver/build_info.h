// Instruction set of this build. Answers are bit-equal between builds of the same version and
// instruction set.
#pragma once

namespace sap {

// The build defines SAP_VERSION, for example "0.2.0".

constexpr const char* InstructionSet() {
#if defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
  return "x86-64-v3";
#elif defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "armv8-a";
#else
  return "portable";
#endif
}

}  // namespace sap
