// SPDX-License-Identifier: MIT
// How many cores this process may use, which can be fewer than the machine has.
#pragma once

#include <cstdint>
#include <filesystem>

namespace mpssm::ops {

/// Cores that the process's control groups (cgroup v2 cpu.max, v1 cpu.cfs_quota_us) leave it on
/// average, its own and those above; infinity if none sets a limit. `root` holds proc/ and sys/.
double cpu_quota(const std::filesystem::path& root = "/");

/// The least of the cores the process may be put on (affinity) and its quota rounded up; at
/// least 1.
std::int64_t usable_cores(const std::filesystem::path& root = "/");

/// The most threads that may be asked for, 64 for each usable core: more are a mistake, and
/// thousands of them bring a process down.
std::int64_t max_threads();

}  // namespace mpssm::ops
