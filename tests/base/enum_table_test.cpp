// SPDX-License-Identifier: MIT
#include "mpssm/base/enum_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::base {
namespace {

enum class Colour { kRed, kGreen, kBlue };
constexpr EnumRow<Colour> kColours[] = {
    {Colour::kRed, "red"}, {Colour::kGreen, "green"}, {Colour::kBlue, "blue"}};
constexpr EnumTable<Colour> table_of(Colour) { return kColours; }

enum class Nameless { kOne };
static_assert(NamedEnum<Colour> && !NamedEnum<Nameless> && !NamedEnum<int>);

TEST(EnumTable, KnowsNamesBothWays) {
  static_assert(table_of(Colour{}).name(Colour::kGreen) == "green");
  static_assert(table_of(Colour{}).find("blue") == Colour::kBlue);
  static_assert(!table_of(Colour{}).find("blu"));
  EXPECT_EQ(table_of(Colour{}).from_name("colour", "blue"), Colour::kBlue);
}

TEST(EnumTable, ListsTheNamesWhenOneIsWrong) {
  EXPECT_THAT([] { table_of(Colour{}).from_name("colour", "mauve"); },
              ::testing::ThrowsMessage<std::invalid_argument>(
                  "colour: expected one of red, green, blue, got 'mauve'"));
}

}  // namespace
}  // namespace mpssm::base
