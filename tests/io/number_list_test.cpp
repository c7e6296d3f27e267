// SPDX-License-Identifier: MIT
#include "mpssm/io/number_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"

namespace mpssm::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(NumberList, RangesAndNumbersMix) {
  EXPECT_THAT(parse_number_list("--tau", "7,2:10:4,2,0:1", 100, 100),
              ElementsAre(0, 1, 2, 6, 7, 10));
}

TEST(NumberList, WhatIsNoListIsRefused) {
  for (const char* list : {"", "x", ",", "1,", "5:1", "1:2:0", "-1", "1:2:3:4", "1.5"}) {
    EXPECT_THAT([&] { parse_number_list("--tau", list, 100, 100); },
                ThrowsMessage<base::Error>(HasSubstr("--tau: expected numbers like")))
        << list;
  }
  EXPECT_THAT([] { parse_number_list("--tau", "101", 100, 100); },
              ThrowsMessage<base::Error>(HasSubstr("up to 100")));
  EXPECT_THAT([] { parse_number_list("--tau", "0:5,50:99", 100, 50); },
              ThrowsMessage<base::Error>(HasSubstr("at most 50 of them")));
}

TEST(NumberList, RangesKeepTheirOrder) {
  EXPECT_THAT(parse_ranges("--seeds", "5,0-2,1"), ElementsAre(5, 0, 1, 2, 1));
  for (const char* list : {"", "x", "1,", "3-1", "-1", "0-99999999"}) {
    EXPECT_THAT(
        [&] { parse_ranges("--seeds", list); },
        ThrowsMessage<base::Error>(HasSubstr("--seeds: expected numbers like 0,2,5 or 0-9")))
        << list;
  }
}

}  // namespace
}  // namespace mpssm::io
