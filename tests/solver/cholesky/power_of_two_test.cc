#include "solver/cholesky/power_of_two.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sap::test {
namespace {

TEST(PowerOfTwoTest, ItIsThatOfTheStandardLibrary) {
  for (const double x : {1.0, 1.5, 2.0, 0.7, 3e-7, 9.99e150, 1e-290, 1e290}) {
    EXPECT_EQ(PowerOfTwoBelow(x), std::ldexp(1.0, std::ilogb(x))) << x;
    EXPECT_EQ(PowerOfTwoBelow(-x), PowerOfTwoBelow(x));
  }
}

TEST(PowerOfTwoTest, ItsInverseIsANormalNumber) {
  using Limits = std::numeric_limits<double>;
  for (const double x : {0.0, Limits::denorm_min(), Limits::min(), Limits::max()}) {
    EXPECT_TRUE(std::isnormal(PowerOfTwoBelow(x))) << x;
    EXPECT_TRUE(std::isnormal(1 / PowerOfTwoBelow(x))) << x;
  }
}

}  // namespace
}  // namespace sap::test
