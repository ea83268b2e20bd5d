#include "server/ops/request_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sap::test::request_id_test {
namespace {

TEST(RequestIdTest, IdsAreHexadecimalAndDifferent) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto made = MakeRequestId();
    const std::string id(made.begin(), made.end());
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

// gRPC receives any bytes in a header, and ends the process that sends them back.
TEST(RequestIdTest, OnlyPrintableTextIsSentBack) {
  EXPECT_TRUE(IsPrintable("r-17 ~!"));
  EXPECT_TRUE(IsPrintable(""));
  for (const std::string& text : {std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f"),
                                  std::string("\xc3\xa9"), std::string("\xff")}) {
    EXPECT_FALSE(IsPrintable(text));
  }
}

}  // namespace
}  // namespace sap::test::request_id_test
