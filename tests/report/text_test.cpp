// SPDX-License-Identifier: MIT
#include "mpssm/report/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::report {
namespace {

using ::testing::ElementsAre;

TEST(Table, NumbersStandRightAndWordsLeft) {
  EXPECT_EQ(table({{"node", "S"}, {"gäb", "0.5"}, {"h", "10"}}), "node  S\ngäb   0.5\nh      10\n");
}

TEST(Table, OfManyRowsTheEarlyOnesAndTheLastAreShown) {
  EXPECT_THAT(rows_to_show(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(rows_to_show(120), ElementsAre(0, 1, 2, 4, 9, 19, 29, 49, 99, 119));
}

TEST(Cells, AreShortAndSingularWhereDue) {
  EXPECT_EQ(shown(1.0 / 3.0), "0.333333");
  EXPECT_EQ(counted(1, "hop"), "1 hop");
  EXPECT_EQ(counted(0, "hop"), "0 hops");
  EXPECT_EQ(percent(0.12345), "12.35");
}

TEST(Coloured, WhatLinesBeginWithAndTheHeadOfATable) {
  EXPECT_EQ(coloured("note: a: b"), "\033[33mnote:\033[0m a: b");
  EXPECT_EQ(coloured(table({{"a", "b"}, {"1", "2"}})), "\033[1ma  b\033[0m\n1  2\n");
  for (const char* plain : {"", "a line", "two\nlines", "ends\n"})
    EXPECT_EQ(coloured(plain), plain);
}

}  // namespace
}  // namespace mpssm::report
