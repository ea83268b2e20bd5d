#include "proto/flags/flag_checks.h"

#include <gtest/gtest.h>

namespace sap {
namespace {

enum class Color : unsigned char { kRed = 3, kBlue = 7 };

TEST(FlagChecksTest, ANameIsReplacedByItsValueAndAnotherIsRefusedWithTheNames) {
  const CLI::Validator color =
      OneOf(std::map<std::string, Color>{{"red", Color::kRed}, {"blue", Color::kBlue}});
  std::string text = "blue";
  EXPECT_EQ(color(text), "");
  EXPECT_EQ(text, "7");
  text = "green";
  EXPECT_EQ(color(text), "'green' is not one of blue, red");
  EXPECT_EQ(color.get_description(), "{blue, red}");
}

TEST(FlagChecksTest, ARangeHasItsEndsAndNoNan) {
  const CLI::Validator range = Between(0.5, 2);
  for (const char* within : {"0.5", "1", "2", "2e0"}) EXPECT_EQ(range(within), "") << within;
  for (const char* beyond : {"0.499", "2.001", "nan", "-nan", "inf", "1s", "two"}) {
    EXPECT_EQ(range(beyond), "'" + std::string(beyond) + "' is not FLOAT in [0.5 - 2]");
  }
}

// Hosts are not resolved before a server listens.
TEST(FlagChecksTest, AnAddressHasAHostAndAPortOrAPath) {
  for (const char* address : {"127.0.0.1:0", "localhost:1", "[::1]:1", "host:65535"}) {
    EXPECT_EQ(ListenHostPort()(address), "");
    EXPECT_EQ(ListenAddress()(address), "");
  }
  EXPECT_EQ(ListenAddress()("unix:/s"), "");
  EXPECT_NE(ListenHostPort()("unix:/s"), "");
  for (const char* address : {"", "host", ":1", "host:", "host:65536", "host:100000", "host:-1",
                              "host:1x", "[::1]", "unix:"}) {
    const std::string error =
        "'" + std::string(address) + "' is not an address; expected HOST:PORT";
    EXPECT_EQ(ListenHostPort()(address), error);
    EXPECT_EQ(ListenAddress()(address), error + " or unix:PATH");
  }
}

}  // namespace
}  // namespace sap
