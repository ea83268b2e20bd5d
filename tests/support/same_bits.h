// Whether two answers of the solver are equal to the last bit, except for times.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "solver/problem/contact_solution.h"

namespace sap::test {

inline bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr auto kBits = [](double x) { return std::bit_cast<uint64_t>(x); };
  return std::ranges::equal(a, b, {}, kBits, kBits);
}

inline std::vector<int> Iterations(const ContactSolution& solution) {
  std::vector<int> iterations;
  for (const IslandReport& report : solution.islands) iterations.push_back(report.iterations);
  return iterations;
}

inline void ExpectSameBits(const ContactSolution& a, const ContactSolution& b) {
  EXPECT_TRUE(SameBits(a.velocity, b.velocity));
  EXPECT_TRUE(SameBits(a.impulse, b.impulse));
  EXPECT_TRUE(SameBits(a.contact_velocity, b.contact_velocity));
  EXPECT_TRUE(SameBits(a.delassus_estimate, b.delassus_estimate));
  EXPECT_TRUE(SameBits(a.angular_impulse, b.angular_impulse));
  EXPECT_TRUE(SameBits(a.row_impulse, b.row_impulse));
  EXPECT_TRUE(SameBits(a.row_velocity, b.row_velocity));
  EXPECT_EQ(Iterations(a), Iterations(b));
  EXPECT_EQ(a.cost, b.cost);
  for (size_t i = 0; i < a.islands.size() && i < b.islands.size(); ++i) {
    EXPECT_EQ(a.islands[i].optimality_gap_bound, b.islands[i].optimality_gap_bound);
    EXPECT_EQ(a.islands[i].momentum_residual, b.islands[i].momentum_residual);
  }
}

}  // namespace sap::test
