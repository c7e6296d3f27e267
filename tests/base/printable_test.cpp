// SPDX-License-Identifier: MIT
#include "mpssm/base/printable.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace mpssm::base {
namespace {

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\nb\tc\r"), "a\\nb\\tc\\r");
  EXPECT_EQ(printable("\x1B[2J\x7F"), "\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, KeepsTextAndEscapesInvalidUtf8) {
  EXPECT_EQ(printable("gr\xC3\xBC\xC3\x9F \xF0\x9F\x9A\x97"),
            "gr\xC3\xBC\xC3\x9F \xF0\x9F\x9A\x97");
  EXPECT_EQ(printable("\xC3"), "\\xc3");
  EXPECT_EQ(printable("\xC0\x80"), "\\xc0\\x80");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("12345678", 8), "12345678");
  EXPECT_EQ(printable("123456789", 8), "12345...");
  EXPECT_EQ(printable("1234\xC3\xBC"
                      "789",
                      8),
            "1234...");
  EXPECT_EQ(printable("123", 2), "..");
}

}  // namespace
}  // namespace mpssm::base
