// SPDX-License-Identifier: MIT
#include "mpssm/train/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace mpssm::train {
namespace {

namespace fs = std::filesystem;

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  double value = 0.0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or "max"
}

double left_on_machine(const fs::path& root) {
  std::ifstream meminfo(root / "proc/meminfo");
  std::string key;
  double kib = 0.0;
  while (meminfo >> key >> kib) {
    if (key == "MemAvailable:") return kib / 1024.0;
    meminfo.ignore(100, '\n');
  }
  return kUnlimited;
}

/// Of one group and all that it is in: each may have a limit of its own.
double left_in_groups(const fs::path& mount, fs::path group, const char* limit, const char* usage) {
  double left = kUnlimited;
  for (;; group = group.parent_path()) {
    const fs::path folder = group.empty() ? mount : mount / group;
    const auto most = number_in(folder / limit);
    const auto used = number_in(folder / usage);
    if (most && used) left = std::min(left, std::max(0.0, *most - *used) / kMib);
    if (group.empty()) return left;
  }
}

}  // namespace

double available_mib(const fs::path& root) {
  double left = left_on_machine(root);
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/a/b", version 2: "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") {
      left = std::min(left, left_in_groups(mount, group, "memory.max", "memory.current"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups(mount / "memory", group, "memory.limit_in_bytes",
                                           "memory.usage_in_bytes"));
    }
  }
  return left == kUnlimited ? 0.0 : left;
}

}  // namespace mpssm::train
