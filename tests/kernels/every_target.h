// SPDX-License-Identifier: MIT
// Runs a check once per instruction set, and makes sure that it was the one that ran.
#pragma once

#include <gtest/gtest.h>

#include "mpssm/kernels/simd.h"

namespace mpssm::kernels {

template <typename Check>
void for_every_target(const Check& check) {
  for (const std::string& target : simd_targets()) {
    SCOPED_TRACE(target);
    set_simd_target(target);
    ASSERT_EQ(active_simd_target(), target);
    check();
  }
  set_simd_target("");
}

}  // namespace mpssm::kernels
