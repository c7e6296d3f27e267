// SPDX-License-Identifier: MIT
#include "mpssm/ops/runtime.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <sched.h>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/machine.h"
#include "mpssm/graph/generators.h"
#include "mpssm/kernels/simd.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

#include "tests/support/scratch.h"
#include "tests/support/threads.h"

namespace mpssm::ops {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The environment is read once per process, so these run in processes of their own.

/// The way to another number of threads than `count`, in this process or what is left of it.
int other_than(int count) { return count == 3 ? 5 : 3; }

void run_an_operator() {
  const auto gso = graph::make_gso(graph::make_random_connected(2000, 4000, 1));
  spmm(gso, torch::ones({2000, 64}));
  ops::linear(torch::ones({2000, 64}), torch::ones({64, 64}), torch::zeros({64}));
}

/// Ends the process with 0 if so.
[[noreturn]] void exit_if(bool so) { std::exit(so ? 0 : 1); }

TEST(RuntimeDeathTest, LeavesTorchsNumberOfThreadsAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        unsetenv("MPSSM_NUM_THREADS");
        at::set_num_threads(1);
        run_an_operator();
        exit_if(at::get_num_threads() == 1 && num_threads() == 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("MPSSM_NUM_THREADS", "3", 1);
        const int before = at::get_num_threads();
        run_an_operator();
        exit_if(at::get_num_threads() == before && num_threads() == 3);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        const int before = at::get_num_threads();
        set_num_threads(other_than(before));
        run_an_operator();
        exit_if(at::get_num_threads() == before && num_threads() == other_than(before));
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(RuntimeDeathTest, TakesASettingThenTheEnvironmentThenTorchsNumber) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("MPSSM_NUM_THREADS", "3", 1);
        at::set_num_threads(5);
        set_num_threads(2);
        const bool setting = num_threads() == 2;
        set_num_threads(0);
        exit_if(setting && num_threads() == 3);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        unsetenv("MPSSM_NUM_THREADS");
        at::set_num_threads(5);
        const bool first = num_threads() == 5;
        at::set_num_threads(4);
        exit_if(first && num_threads() == 4);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(RuntimeDeathTest, AProgramTakesTheEnvironmentThenItsCoresAndTellsTorch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("MPSSM_NUM_THREADS", "3", 1);
        set_process_threads(0);
        exit_if(num_threads() == 3 && at::get_num_threads() == 3);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        for (const char* name : {"MPSSM_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
          unsetenv(name);
        }
        set_process_threads(0);
        exit_if(num_threads() == base::usable_cores() &&
                at::get_num_threads() == base::usable_cores());
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("MPSSM_NUM_THREADS", "3", 1);
        set_process_threads(2);
        exit_if(num_threads() == 2 && at::get_num_threads() == 2);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(RuntimeDeathTest, ListensToOmpNumThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // A "threadsafe" death test starts the program anew, with this set from its beginning.
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EXIT(
      {
        unsetenv("MPSSM_NUM_THREADS");
        const bool library = num_threads() == 1;
        set_process_threads(0);
        exit_if(library && num_threads() == 1 && at::get_num_threads() == 1);
      },
      ::testing::ExitedWithCode(0), "");
  unsetenv("OMP_NUM_THREADS");
}

TEST(Runtime, WorkersAreAsManyAsThreadsAndOneInsideAParallelRegion) {
  const mpssm::testing::KeepThreads keep;
  set_num_threads(3);
  std::atomic<int> workers{0};
  std::atomic<int> nested{0};
  Threads().run([&](std::int64_t) {
    ++workers;
    Threads().run([&](std::int64_t) { ++nested; });
  });
  EXPECT_EQ(workers, 3);
  EXPECT_EQ(nested, 3);
  EXPECT_THROW(Threads().run([](std::int64_t) { throw std::runtime_error("one of them"); }),
               std::runtime_error);
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
              "MPSSM_NUM_THREADS: expected a whole number from 0 to .*, got 'two'");
  for (const char* absurd : {"-1", "100000", "4294967297", "99999999999999999999"}) {
    EXPECT_EXIT(message_with("MPSSM_NUM_THREADS", absurd), ::testing::ExitedWithCode(3),
                "MPSSM_NUM_THREADS: expected a whole number from 0 to ");
  }
  EXPECT_EXIT(message_with("MPSSM_SIMD", "MMX"), ::testing::ExitedWithCode(3),
              "set_simd_target: expected one of .*, got 'MMX'");
}

TEST(Runtime, RefusesAbsurdNumbersOfThreads) {
  for (const std::int64_t absurd :
       {std::int64_t{-1}, std::int64_t{100000}, std::int64_t{1} << 32}) {
    EXPECT_THAT([&] { set_num_threads(absurd); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("set_num_threads: expected a number "
                                                               "from 0 to ")));
    EXPECT_THAT([&] { set_process_threads(absurd); },
                ThrowsMessage<std::invalid_argument>(
                    HasSubstr("of this process), got " + std::to_string(absurd))));
  }
}

}  // namespace
}  // namespace mpssm::ops
