// SPDX-License-Identifier: MIT
#include "mpssm/train/grid.h"

#include <filesystem>
#include <fmt/core.h>
#include <sstream>
#include <system_error>
#include <toml++/toml.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"
#include "mpssm/train/config.h"

namespace mpssm::train {
namespace {

constexpr std::string_view kShipped = "gpp, lrgb, hetero, temporal";

/// A value as --set takes it.
std::string value_text(const toml::node& node, const std::string& where) {
  if (const auto value = node.value_exact<bool>()) return *value ? "true" : "false";
  if (const auto value = node.value_exact<std::int64_t>()) return std::to_string(*value);
  if (const auto value = node.value_exact<double>()) return io::number_text(*value);
  const auto value = node.value_exact<std::string>();
  if (!value || value->find(',') != std::string::npos) {
    throw base::Error(where, "expected numbers, texts without comma, true, false or lists of them");
  }
  return *value;
}

void take_table(const toml::table& table, const std::string& prefix, const std::string& origin,
                Grid& grid) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const std::string where = fmt::format("{}: {}", origin, base::printable(name));
    if (const toml::table* inner = node.as_table()) {
      take_table(*inner, name + ".", origin, grid);
    } else if (const toml::array* values = node.as_array()) {
      if (values->empty()) throw base::Error(where, "expected a list of values, got an empty one");
      std::string axis = name + "=";
      for (const toml::node& value : *values) {
        axis += (axis.back() == '=' ? "" : ",") + value_text(value, where);
      }
      grid.axes.push_back(axis);
    } else {
      grid.settings.push_back(fmt::format("{}={}", name, value_text(node, where)));
    }
  }
}

std::string key_of(const std::string& text) { return text.substr(0, text.find('=')); }

}  // namespace

Grid grid_from_toml(std::string_view text, const std::string& origin) {
  check_toml_text(text, origin);
  Grid grid;
  try {
    take_table(toml::parse(text, origin), "", origin, grid);
  } catch (const toml::parse_error& error) {
    throw base::Error(fmt::format("{}:{}: {}", origin, error.source().begin.line,
                                  std::string(error.description())));
  }
  return grid;
}

Grid read_grid(const std::string& file_or_name) {
  constexpr std::int64_t kMaxBytes = 1 << 20;
  if (const char* shipped = grid_toml(file_or_name)) {
    return grid_from_toml(shipped, fmt::format("configs/grids/{}.toml", file_or_name));
  }
  std::error_code ignored;
  if (!std::filesystem::exists(file_or_name, ignored)) {
    throw base::Error("--grid", fmt::format("expected KEY=A,B,C, a file, or one of {}, got '{}'",
                                            kShipped, base::printable(file_or_name)));
  }
  return grid_from_toml(io::read_file(file_or_name, kMaxBytes), file_or_name);
}

std::vector<std::string> with_grids(const std::vector<std::string>& axes, Config& base) {
  const Config asked = base;
  std::vector<std::string> all;
  for (const std::string& axis : axes) {
    if (axis.find('=') != std::string::npos) {
      all.push_back(axis);
      continue;
    }
    const Grid grid = read_grid(axis);
    for (const std::string& setting : grid.settings) {
      if (!asked.given.contains(key_of(setting))) apply_setting(base, setting);
    }
    for (const std::string& more : grid.axes) {
      if (!asked.given.contains(key_of(more))) all.push_back(more);
    }
  }
  if (all.empty() && !axes.empty()) {
    throw base::Error("--grid", "nothing to search: --set or --config says all that it lists");
  }
  return all;
}

}  // namespace mpssm::train
