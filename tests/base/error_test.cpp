// SPDX-License-Identifier: MIT
#include "mpssm/base/error.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::base {
namespace {

using ::testing::StrEq;

const Error kWhole({.where = "my.csv:3", .expected = "2 cells", .got = "3", .hint = "remove one"},
                   ErrorKind::kSystem);

TEST(Error, SaysItsPartsInOneLine) {
  EXPECT_THAT(kWhole.what(), StrEq("my.csv:3: expected 2 cells, got 3; remove one"));
  EXPECT_EQ(kWhole.kind(), ErrorKind::kSystem);
  EXPECT_THAT(Error("my.csv", "is empty").what(), StrEq("my.csv: is empty"));
  EXPECT_THAT(Error("no sample").what(), StrEq("no sample"));
  EXPECT_THAT(Error(ErrorText{.expected = "2", .got = "3"}).what(), StrEq("expected 2, got 3"));
  EXPECT_THAT(Error({.where = "x", .what = "weight 5", .expected = "1"}).what(),
              StrEq("x: weight 5, expected 1"));
  EXPECT_THAT(Error({.where = "x", .what = "weight 5", .hint = "take 1"}).what(),
              StrEq("x: weight 5; take 1"));
  EXPECT_EQ(Error("x").kind(), ErrorKind::kInput);
}

TEST(Error, IsOneLineWhateverCame) {
  EXPECT_THAT(Error("a\nb.csv", "got '\x1B'").what(), StrEq("a\\nb.csv: got '\\x1b'"));
}

TEST(Error, CanBeSaidToBeElsewhere) {
  EXPECT_THAT(kWhole.at("--data").what(), StrEq("--data: expected 2 cells, got 3; remove one"));
  EXPECT_EQ(kWhole.at("--data").kind(), ErrorKind::kSystem);
  EXPECT_THAT(kWhole.within("runs/a").what(),
              StrEq("runs/a: my.csv:3: expected 2 cells, got 3; remove one"));
  EXPECT_THAT(Error("no sample").within("runs/a").what(), StrEq("runs/a: no sample"));
}

TEST(Error, CanHaveAnotherRemedy) {
  EXPECT_THAT(kWhole.with_hint("add a name").what(),
              StrEq("my.csv:3: expected 2 cells, got 3; add a name"));
  EXPECT_EQ(kWhole.with_hint("").text().expected, "2 cells");
}

}  // namespace
}  // namespace mpssm::base
