// SPDX-License-Identifier: MIT
#include "mpssm/base/utf8.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace mpssm::base {
namespace {

TEST(Utf8, KnowsHowLongACharacterIs) {
  EXPECT_EQ(utf8_size("a\xC3\xBC"), 1u);
  EXPECT_EQ(utf8_size("\xC3\xBC"), 2u);
  EXPECT_EQ(utf8_size("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(utf8_size("\xF0\x9F\x9A\x97"), 4u);
  EXPECT_EQ(utf8_size(std::string_view("\0", 1)), 1u);
}

TEST(Utf8, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3(", "\xFF"}) {
    EXPECT_EQ(utf8_size(text), 0u) << ::testing::PrintToString(text);
  }
}

TEST(Utf8, ATextIsWhollyOrNot) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("gr\xC3\xBC\xC3\x9F"));
  EXPECT_FALSE(is_utf8("gr\xC3\xBC\xC3"));
  EXPECT_FALSE(is_utf8("\xFFgr"));
}

}  // namespace
}  // namespace mpssm::base
