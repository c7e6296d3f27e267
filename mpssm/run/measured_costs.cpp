// SPDX-License-Identifier: MIT
#include "mpssm/run/measured_costs.h"

#include <cstdlib>
#include <fmt/core.h>
#include <optional>
#include <string>

#include "mpssm/base/error.h"
#include "mpssm/base/sha256.h"
#include "mpssm/engine/plan_calibration.h"
#include "mpssm/io/file.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;

std::optional<engine::PlanCosts> read_costs(const fs::path& path, const std::string& machine) {
  constexpr std::int64_t kMostBytes = 1 << 16;
  try {
    const std::string text = io::read_file(path, kMostBytes);
    const std::size_t end = text.find('\n');
    if (end == std::string::npos || text.substr(0, end) != machine) return std::nullopt;
    return engine::plan_costs_from_text(text.substr(end + 1, text.find('\n', end + 1) - end - 1));
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

}  // namespace

engine::PlanCosts measured_plan_costs(const fs::path& folder,
                                      const std::function<engine::PlanCosts()>& measure) {
  const std::string machine = engine::calibration_machine();
  const fs::path path =
      folder / fmt::format("plan-costs-{}.txt", base::sha256(machine).substr(0, 12));
  if (const auto kept = read_costs(path, machine)) return *kept;
  const engine::PlanCosts costs = measure();
  try {
    std::error_code error;
    fs::create_directories(folder, error);  // writing says what is wrong
    io::write_file(path, fmt::format("{}\n{}\n", machine, engine::to_text(costs)));
  } catch (const base::Error&) {
    return engine::builtin_plan_costs();
  }
  return costs;
}

engine::PlanCosts measured_plan_costs() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') {
    return measured_plan_costs(fs::path(cache) / "mpssm", engine::calibrate_plan_costs);
  }
  if (home == nullptr || *home == '\0') return engine::builtin_plan_costs();
  return measured_plan_costs(fs::path(home) / ".cache" / "mpssm", engine::calibrate_plan_costs);
}

}  // namespace mpssm::run
