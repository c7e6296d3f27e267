// SPDX-License-Identifier: MIT
#include "mpssm/base/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>
#include <fstream>
#include <functional>
#include <limits>
#include <sched.h>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mpssm::base {
namespace {

namespace fs = std::filesystem;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kMib = 1024.0 * 1024.0;

/// The numbers at the start of a file; "max" and what is not there end them.
std::vector<double> numbers_in(const fs::path& file) {
  std::ifstream in(file);
  std::vector<double> numbers;
  for (double number; in >> number;) numbers.push_back(number);
  return numbers;
}

/// Two numbers, each the first of a file; none if one is missing.
std::vector<double> pair_of(const fs::path& first, const fs::path& second) {
  const std::vector<double> a = numbers_in(first);
  const std::vector<double> b = numbers_in(second);
  return a.empty() || b.empty() ? std::vector<double>{} : std::vector<double>{a[0], b[0]};
}

double cores(const std::vector<double>& quota_and_period) {
  const bool limits =
      quota_and_period.size() == 2 && quota_and_period[0] > 0.0 && quota_and_period[1] > 0.0;
  return limits ? quota_and_period[0] / quota_and_period[1] : kNoLimit;
}

double mib_left(const std::vector<double>& limit_and_usage) {
  if (limit_and_usage.size() != 2) return kNoLimit;
  return std::max(0.0, limit_and_usage[0] - limit_and_usage[1]) / kMib;
}

/// What a folder of a control group says in either version.
struct Limit {
  std::string_view controller;
  std::function<double(const fs::path&)> in_v1;
  std::function<double(const fs::path&)> in_v2;
};

/// The least limit of a group and those above it. Inside a container the path may be the one seen
/// from outside: what does not exist limits nothing, and the mount's own root is always looked at.
double least_limit(const fs::path& mount, const std::string& group,
                   const std::function<double(const fs::path&)>& limit_of) {
  double least = limit_of(mount);
  fs::path place = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    place /= part;
    least = std::min(least, limit_of(place));
  }
  return least;
}

double limit_of_groups(const fs::path& root, const Limit& limit) {
  const fs::path mount = root / "sys/fs/cgroup";
  double least = kNoLimit;
  const auto look = [&](const fs::path& place, const std::string& group, const auto& limit_of) {
    least = std::min(least, least_limit(place, group, limit_of));
  };
  std::ifstream groups(root / "proc/self/cgroup");
  // Lines "ID:CONTROLLERS:PATH"; v2 has one, "0::PATH".
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      look(mount, group, limit.in_v2);
      look(mount / "unified", group, limit.in_v2);  // both versions side by side
    } else if (("," + controllers + ",").find(fmt::format(",{},", limit.controller)) !=
               std::string::npos) {
      look(mount / controllers, group, limit.in_v1);
      look(mount / limit.controller, group, limit.in_v1);
    }
  }
  return least;
}

double mib_left_on_machine(const fs::path& root) {
  std::ifstream meminfo(root / "proc/meminfo");
  std::string key;
  double kib = 0.0;
  while (meminfo >> key >> kib) {
    if (key == "MemAvailable:") return kib / 1024.0;
    meminfo.ignore(100, '\n');
  }
  return kNoLimit;
}

}  // namespace

double cpu_quota(const fs::path& root) {
  return limit_of_groups(
      root, {.controller = "cpu",
             .in_v1 =
                 [](const fs::path& group) {  // a quota of -1 is none
                   return cores(pair_of(group / "cpu.cfs_quota_us", group / "cpu.cfs_period_us"));
                 },
             .in_v2 = [](const fs::path& group) {  // "QUOTA PERIOD" or "max PERIOD"
               return cores(numbers_in(group / "cpu.max"));
             }});
}

std::int64_t usable_cores(const fs::path& root) {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  const auto count =
      static_cast<std::int64_t>(known ? CPU_COUNT(&set) : std::thread::hardware_concurrency());
  const double quota = std::ceil(cpu_quota(root));
  return std::max<std::int64_t>(
      1, quota < static_cast<double>(count) ? static_cast<std::int64_t>(quota) : count);
}

std::int64_t max_threads() { return 64 * usable_cores(); }

double available_mib(const fs::path& root) {
  const double in_groups = limit_of_groups(
      root, {.controller = "memory",
             .in_v1 =
                 [](const fs::path& group) {
                   return mib_left(
                       pair_of(group / "memory.limit_in_bytes", group / "memory.usage_in_bytes"));
                 },
             .in_v2 =
                 [](const fs::path& group) {
                   return mib_left(pair_of(group / "memory.max", group / "memory.current"));
                 }});
  const double left = std::min(in_groups, mib_left_on_machine(root));
  return left == kNoLimit ? 0.0 : left;
}

double peak_mib() {
  // Not by getrusage, whose peak is inherited from whoever started this process.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kKey = "VmHWM:";
    if (line.starts_with(kKey)) return std::atof(line.c_str() + kKey.size()) / 1024.0;
  }
  return 0.0;
}

}  // namespace mpssm::base
