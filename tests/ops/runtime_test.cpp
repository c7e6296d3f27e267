// SPDX-License-Identifier: MIT
#include "mpssm/ops/runtime.h"

#include <cstdlib>
#include <sched.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/kernels/simd.h"

namespace mpssm::ops {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The environment is read once per process, so these run in processes of their own.
TEST(RuntimeDeathTest, UsesAllCoresUnlessToldOtherwise) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        unsetenv("MPSSM_NUM_THREADS");
        cpu_set_t cores;
        sched_getaffinity(0, sizeof cores, &cores);
        std::exit(num_threads() == CPU_COUNT(&cores) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("MPSSM_NUM_THREADS", "3", 1);
        std::exit(num_threads() == 3 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(RuntimeDeathTest, ReadsTheInstructionSetFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string last = kernels::simd_targets().back();
  EXPECT_EXIT(
      {
        setenv("MPSSM_SIMD", last.c_str(), 1);
        ensure_runtime();
        std::exit(kernels::active_simd_target() == last ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(RuntimeDeathTest, RefusesNonsenseInTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto message_with = [](const char* name, const char* value) {
    setenv(name, value, 1);
    try {
      ensure_runtime();
    } catch (const std::invalid_argument& error) {
      std::fputs(error.what(), stderr);
      std::exit(3);
    }
    std::exit(0);
  };
  EXPECT_EXIT(message_with("MPSSM_NUM_THREADS", "two"), ::testing::ExitedWithCode(3),
              "MPSSM_NUM_THREADS: expected a whole number >= 0, got 'two'");
  EXPECT_EXIT(message_with("MPSSM_SIMD", "MMX"), ::testing::ExitedWithCode(3),
              "set_simd_target: expected one of .*, got 'MMX'");
}

TEST(Runtime, RefusesANegativeNumberOfThreads) {
  EXPECT_THAT([] { set_num_threads(-1); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("expected a number >= 0, got -1")));
}

}  // namespace
}  // namespace mpssm::ops
