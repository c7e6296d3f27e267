// SPDX-License-Identifier: MIT
#include "mpssm/kernels/simd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::kernels {
namespace {

TEST(Simd, UsesTheBestTargetUnlessForced) {
  set_simd_target("");
  ASSERT_FALSE(simd_targets().empty());
  EXPECT_EQ(active_simd_target(), simd_targets().front());
  set_simd_target(simd_targets().back());
  EXPECT_EQ(active_simd_target(), simd_targets().back());
  set_simd_target("");
  EXPECT_EQ(active_simd_target(), simd_targets().front());
}

TEST(Simd, RefusesAnUnknownTargetAndListsTheKnown) {
  EXPECT_THAT(
      [] { set_simd_target("MMX"); },
      ::testing::ThrowsMessage<std::invalid_argument>(::testing::AllOf(
          ::testing::HasSubstr("got 'MMX'"), ::testing::HasSubstr(simd_targets().front()))));
}

}  // namespace
}  // namespace mpssm::kernels
