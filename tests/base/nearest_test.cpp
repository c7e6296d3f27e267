// SPDX-License-Identifier: MIT
#include "mpssm/base/nearest.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace mpssm::base {
namespace {

TEST(Nearest, FindsSlipsOnly) {
  const std::vector<std::string_view> names = {"sssp", "minesweeper", "metr-la"};
  EXPECT_EQ(nearest("minesweper", names), "minesweeper");
  EXPECT_EQ(nearest("metr_la", names), "metr-la");
  EXPECT_EQ(nearest("ssp", names), "sssp");
  EXPECT_EQ(nearest("cora", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(100000, 'm'), names), "");
}

}  // namespace
}  // namespace mpssm::base
