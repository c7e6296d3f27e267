// SPDX-License-Identifier: MIT
// Memory that this process could still have.
#pragma once

#include <filesystem>

namespace mpssm::train {

/// In MiB: what the machine has left, or what the limits of its container (cgroup, version 1 or 2)
/// leave, whichever is less; 0 if the system does not say. `root` stands in for "/" in tests.
double available_mib(const std::filesystem::path& root = "/");

}  // namespace mpssm::train
