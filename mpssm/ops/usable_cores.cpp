// SPDX-License-Identifier: MIT
#include "mpssm/ops/usable_cores.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sched.h>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace mpssm::ops {
namespace {

namespace fs = std::filesystem;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The numbers at the start of a file; "max" and what is not there end them.
std::vector<double> numbers_in(const fs::path& file) {
  std::ifstream in(file);
  std::vector<double> numbers;
  for (double number; in >> number;) numbers.push_back(number);
  return numbers;
}

double cores(const std::vector<double>& quota_and_period) {
  const bool limits =
      quota_and_period.size() == 2 && quota_and_period[0] > 0.0 && quota_and_period[1] > 0.0;
  return limits ? quota_and_period[0] / quota_and_period[1] : kNoLimit;
}

/// cgroup v2: "QUOTA PERIOD" or "max PERIOD".
double limit_of_v2(const fs::path& group) { return cores(numbers_in(group / "cpu.max")); }

/// cgroup v1: a quota of -1 is none.
double limit_of_v1(const fs::path& group) {
  std::vector<double> both = numbers_in(group / "cpu.cfs_quota_us");
  const std::vector<double> period = numbers_in(group / "cpu.cfs_period_us");
  both.insert(both.end(), period.begin(), period.end());
  return cores(both);
}

/// The least limit of a group and those above it. Inside a container the path may be the one seen
/// from outside: what does not exist limits nothing, and the mount's own root is always looked at.
template <typename LimitOf>
double least_limit(const fs::path& mount, const std::string& group, const LimitOf& limit_of) {
  double least = limit_of(mount);
  fs::path place = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    place /= part;
    least = std::min(least, limit_of(place));
  }
  return least;
}

}  // namespace

double cpu_quota(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  double least = kNoLimit;
  std::ifstream groups(root / "proc/self/cgroup");
  // Lines "ID:CONTROLLERS:PATH"; v2 has one, "0::PATH".
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_limit(mount, group, limit_of_v2));
      // Both versions side by side.
      least = std::min(least, least_limit(mount / "unified", group, limit_of_v2));
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name != "cpu") continue;
      least = std::min(least, least_limit(mount / controllers, group, limit_of_v1));
      least = std::min(least, least_limit(mount / "cpu", group, limit_of_v1));
    }
  }
  return least;
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

}  // namespace mpssm::ops
