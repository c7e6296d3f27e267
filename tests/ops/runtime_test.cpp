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

#include "mpssm/graph/generators.h"
#include "mpssm/kernels/simd.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"
#include "mpssm/ops/usable_cores.h"

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
        exit_if(num_threads() == usable_cores() && at::get_num_threads() == usable_cores());
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
  run_workers([&] {
    ++workers;
    run_workers([&] { ++nested; });
  });
  EXPECT_EQ(workers, 3);
  EXPECT_EQ(nested, 3);
  EXPECT_THROW(run_workers([] { throw std::runtime_error("one of them"); }), std::runtime_error);
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

/// A folder that looks like the root of a system to usable_cores().
struct FakeRoot : mpssm::testing::Scratch {
  explicit FakeRoot(std::string_view groups) { put("proc/self/cgroup", groups); }
};

TEST(UsableCores, SeesTheQuotaOfAGroupAndOfThoseAboveIt) {
  const FakeRoot root("0::/user/job\n");
  EXPECT_EQ(cpu_quota(root.folder()), std::numeric_limits<double>::infinity());
  root.put("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root.folder()), std::numeric_limits<double>::infinity());
  root.put("sys/fs/cgroup/user/job/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(root.folder()), 2.5);
  root.put("sys/fs/cgroup/user/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(root.folder()), 0.5);
  EXPECT_EQ(usable_cores(root.folder()), 1);  // rounded up
}

TEST(UsableCores, SeesTheQuotaOfAContainerWhosePathIsTheHosts) {
  const FakeRoot root("0::/kubepods/pod1/abc\n");
  root.put("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(root.folder()), 1.0);
  EXPECT_EQ(usable_cores(root.folder()), 1);
}

TEST(UsableCores, SeesTheQuotaOfVersionOne) {
  const FakeRoot root("5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.folder()), std::numeric_limits<double>::infinity());
  root.put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "150000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(root.folder()), 1.5);
}

TEST(UsableCores, IsAtMostWhatTheProcessMayBePutOn) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  const FakeRoot none("");
  EXPECT_EQ(usable_cores(none.folder()), CPU_COUNT(&cores));
  for (const char* nonsense : {"", ":", "0:", "0::", "4:cpu", "x"}) {
    const FakeRoot root(nonsense);
    root.put("sys/fs/cgroup/cpu.max", "x y z");
    EXPECT_EQ(usable_cores(root.folder()), CPU_COUNT(&cores)) << nonsense;
  }
}

}  // namespace
}  // namespace mpssm::ops
