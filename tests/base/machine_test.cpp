// SPDX-License-Identifier: MIT
#include "mpssm/base/machine.h"

#include <limits>
#include <sched.h>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/scratch.h"

namespace mpssm::base {
namespace {

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

TEST(AvailableMemory, IsWhatTheMachineHasLeft) {
  const testing::Scratch scratch;
  scratch.put("proc/meminfo", "MemTotal: 2048000 kB\nMemFree: 100 kB\nMemAvailable: 1024000 kB\n");
  EXPECT_DOUBLE_EQ(available_mib(scratch.folder()), 1000.0);
}

TEST(AvailableMemory, IsUnknownWhereNothingSaysSo) {
  const testing::Scratch scratch;
  EXPECT_EQ(available_mib(scratch.folder()), 0.0);
}

TEST(AvailableMemory, SeesTheLimitOfAContainer) {
  const testing::Scratch scratch;
  scratch.put("proc/meminfo", "MemAvailable: 1024000 kB\n");
  scratch.put("proc/self/cgroup", "0::/outer/inner\n");
  scratch.put("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  scratch.put("sys/fs/cgroup/outer/inner/memory.current", "1048576\n");
  EXPECT_DOUBLE_EQ(available_mib(scratch.folder()), 1000.0);
  scratch.put("sys/fs/cgroup/outer/memory.max", "104857600\n");  // 100 MiB
  scratch.put("sys/fs/cgroup/outer/memory.current", "10485760\n");
  EXPECT_DOUBLE_EQ(available_mib(scratch.folder()), 90.0);
}

TEST(AvailableMemory, SeesTheLimitOfAnOlderKindOfContainer) {
  const testing::Scratch scratch;
  scratch.put("proc/meminfo", "MemAvailable: 1024000 kB\n");
  scratch.put("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/box\n");
  scratch.put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "52428800\n");
  scratch.put("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "0\n");
  EXPECT_DOUBLE_EQ(available_mib(scratch.folder()), 50.0);
}

}  // namespace
}  // namespace mpssm::base
