// SPDX-License-Identifier: MIT
#include "mpssm/train/search.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/sha256.h"
#include "mpssm/io/file.h"
#include "mpssm/train/trainer.h"

namespace mpssm::train {
namespace {

using base::Error;

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

Axis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error("--grid: expected KEY=A,B,C, got '" + base::printable(text) + "'");
  }
  Axis axis{text.substr(0, equals), {}};
  std::size_t begin = equals + 1;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    axis.values.push_back(text.substr(begin, end - begin));
    if (axis.values.back().empty()) {
      throw Error("--grid: " + axis.key + " has an empty value");
    }
    begin = end + 1;
  }
  return axis;
}

}  // namespace

std::vector<std::vector<std::string>> search_points(const std::vector<std::string>& axes,
                                                    std::int64_t random) {
  constexpr std::int64_t kMaxPoints = 100'000;
  std::vector<std::vector<std::string>> points = {{}};
  std::vector<std::string> keys;
  for (const std::string& text : axes) {
    const Axis axis = parse_axis(text);
    if (std::find(keys.begin(), keys.end(), axis.key) != keys.end()) {
      throw Error("--grid: " + axis.key + " is given twice");
    }
    keys.push_back(axis.key);
    std::vector<std::vector<std::string>> longer;
    if (static_cast<std::int64_t>(points.size() * axis.values.size()) > kMaxPoints) {
      throw Error("--grid", fmt::format("more than {} combinations", kMaxPoints));
    }
    for (const auto& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back(axis.key + "=" + value);
      }
    }
    points = std::move(longer);
  }
  const auto count = static_cast<std::int64_t>(points.size());
  if (random <= 0 || random >= count) return points;
  std::vector<std::vector<std::string>> drawn;
  const std::vector<std::int64_t> order = epoch_order(count, /*seed=*/0, /*epoch=*/0);
  for (std::int64_t i = 0; i < random; ++i) drawn.push_back(points[order[i]]);
  return drawn;
}

std::string folder_name(const std::vector<std::string>& settings) {
  std::string name;
  for (const std::string& setting : settings) {
    const std::size_t dot = setting.find('.');
    name += (name.empty() ? "" : ",") + setting.substr(dot == std::string::npos ? 0 : dot + 1);
  }
  // Names that a file system takes: no separators, not too long, and still different.
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  constexpr std::size_t kMaxLength = 120;
  if (name.size() > kMaxLength)
    name = name.substr(0, kMaxLength) + "-" + base::sha256(name).substr(0, 8);
  return name;
}

}  // namespace mpssm::train
