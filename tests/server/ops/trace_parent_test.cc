#include "server/ops/trace_parent.h"

#include <gtest/gtest.h>

#include <string>

namespace sap::test::trace_parent_test {
namespace {

// The example of the standard (https://www.w3.org/TR/trace-context/).
const std::string kExample = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string With(size_t position, char c) {
  std::string text = kExample;
  text[position] = c;
  return text;
}

TEST(TraceParentTest, TheIdsAreReadFromASampledHeader) {
  const auto parent = SampledParent(kExample);
  ASSERT_TRUE(parent.has_value());
  EXPECT_EQ(parent->trace_id,
            (std::array<uint8_t, 16>{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce,
                                     0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}));
  EXPECT_EQ(parent->span_id,
            (std::array<uint8_t, 8>{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}));
}

TEST(TraceParentTest, ATraceThatItsClientDoesNotSampleIsNoTrace) {
  EXPECT_FALSE(SampledParent(With(54, '0')).has_value());
  EXPECT_TRUE(SampledParent(With(54, '3')).has_value());  // sampled, and of random ids
  EXPECT_FALSE(SampledParent(With(54, '2')).has_value());
}

TEST(TraceParentTest, LaterVersionsBeginAsTheFirst) {
  std::string later = kExample;
  later[1] = '1';
  EXPECT_TRUE(SampledParent(later).has_value());
  EXPECT_TRUE(SampledParent(later + "-what-the-future-will-be-like").has_value());
  EXPECT_FALSE(SampledParent(later + ".what-the-future-will-be-like").has_value());
  EXPECT_FALSE(SampledParent(kExample + "-what-the-future-will-be-like").has_value());
}

TEST(TraceParentTest, AnythingElseIsNoTrace) {
  for (const std::string& text :
       {std::string(), std::string("00"), kExample.substr(0, 54), With(2, '_'), With(35, '_'),
        With(52, '_'), With(0, 'f').replace(1, 1, "f"), With(3, 'G'), With(3, 'B'), With(40, 'x'),
        With(53, '.'), std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01")}) {
    EXPECT_FALSE(SampledParent(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sap::test::trace_parent_test
