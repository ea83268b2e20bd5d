// The parts of an answer that are a function of problem, guess and options: all but times.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "client/cpp/solution.h"
#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/solution.pb.h"

namespace sap::test {

// Equal if and only if all bits are. Printed as a short hash.
struct AnswerBits {
  std::string bytes;

  bool operator==(const AnswerBits&) const = default;
  friend void PrintTo(const AnswerBits& bits, std::ostream* out) {
    *out << bits.bytes.size() << " bytes, hash " << std::hash<std::string>()(bits.bytes);
  }
};

inline AnswerBits Bits(const v1::ContactSolution& solution) {
  v1::ContactSolution timeless = solution;
  timeless.clear_timings();
  if (timeless.has_islands()) timeless.mutable_islands()->clear_solve_time_s();
  return {timeless.SerializeAsString()};
}

inline AnswerBits Bits(const client::Solution& solution) {
  v1::ContactSolution message;
  client::ToMessage(solution, &message);
  return Bits(message);
}

}  // namespace sap::test
