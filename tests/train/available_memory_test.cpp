// SPDX-License-Identifier: MIT
#include "mpssm/train/available_memory.h"

#include <gtest/gtest.h>

#include "tests/support/scratch.h"

namespace mpssm::train {
namespace {

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
}  // namespace mpssm::train
