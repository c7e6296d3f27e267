// SPDX-License-Identifier: MIT
// What this process may use of its machine: the limits of its container count, not only what is
// built in.
#pragma once

#include <cstdint>
#include <filesystem>

namespace mpssm::base {

/// Cores that the process's control groups (cgroup v2 cpu.max, v1 cpu.cfs_quota_us) leave it on
/// average, its own and those above; infinity if none sets a limit. `root` holds proc/ and sys/.
double cpu_quota(const std::filesystem::path& root = "/");

/// The least of the cores the process may be put on (affinity) and its quota rounded up; at
/// least 1.
std::int64_t usable_cores(const std::filesystem::path& root = "/");

/// The most threads that may be asked for, 64 for each usable core: more are a mistake, and
/// thousands of them bring a process down.
std::int64_t max_threads();

/// In MiB: what the machine has left, or what the limits of the process's control groups leave,
/// whichever is less; 0 if the system does not say.
double available_mib(const std::filesystem::path& root = "/");

/// Peak memory of this process so far, in MiB.
double peak_mib();

}  // namespace mpssm::base
