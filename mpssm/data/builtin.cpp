// SPDX-License-Identifier: MIT
// Built-in datasets by name, and the Minesweeper board.
#include "mpssm/data/builtin.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numeric>
#include <optional>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/random.h"
#include "mpssm/data/split.h"
#include "mpssm/graph/generators.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

using base::Random;

constexpr std::int64_t kMinSide = 2;
constexpr std::int64_t kMaxSide = 2000;
constexpr std::int64_t kDefaultSide = 100;
constexpr std::int64_t kMinGraphs = 4;
constexpr std::int64_t kMaxGraphs = 100000;
constexpr std::int64_t kDefaultGraphs = 1280;
constexpr std::int64_t kNumSplits = 10;

std::string_view head_of(std::string_view name) { return name.substr(0, name.find(':')); }
std::string_view rest_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
}

// `share` of n cells, at random.
std::vector<bool> mark_cells(std::int64_t n, double share, Random& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  std::vector<bool> marked(order.size(), false);
  const auto count = static_cast<std::int64_t>(std::llround(share * static_cast<double>(n)));
  for (std::int64_t i = 0; i < count; ++i) marked[order[i]] = true;
  return marked;
}

Dataset make_board(const std::string& name, std::uint64_t seed) {
  const std::string_view size = rest_of(name);
  const std::size_t cross = size.find('x');
  std::optional<std::int64_t> rows = kDefaultSide;
  std::optional<std::int64_t> columns = kDefaultSide;
  if (name != "board") {
    const bool has_cross = cross != std::string_view::npos;
    rows = has_cross ? io::to_integer(size.substr(0, cross)) : std::nullopt;
    columns = has_cross ? io::to_integer(size.substr(cross + 1)) : std::nullopt;
  }
  const auto in_range = [](const auto& side) {
    return side && *side >= kMinSide && *side <= kMaxSide;
  };
  if (!in_range(rows) || !in_range(columns)) {
    throw base::Error("board",
                      fmt::format("expected board:ROWSxCOLUMNS with {} to {} of each, got '{}'",
                                  kMinSide, kMaxSide, base::printable(name)));
  }
  return {.name = name,
          .task = Task::kNodeBinary,
          .metric = "roc_auc",
          .protocol = "10 random 50/25/25 splits; ROC AUC; best validation step",
          .source = fmt::format("made with seed {}", seed),
          .content = make_board_data(*rows, *columns, seed)};
}

Dataset make_properties(const std::string& name, std::uint64_t seed) {
  const std::string property(head_of(rest_of(name)));
  const std::string_view size = rest_of(rest_of(name));
  const bool is_known = property == "diameter" || property == "sssp" ||
                        property == "eccentricity" || property == "laplacian";
  const auto count = size.empty() ? kDefaultGraphs : io::to_integer(size).value_or(0);
  if (!is_known || count < kMinGraphs || count > kMaxGraphs) {
    throw base::Error(
        "properties",
        fmt::format("expected properties:PROPERTY or properties:PROPERTY:COUNT, PROPERTY one of "
                    "diameter, sssp, eccentricity, laplacian and COUNT from {} to {}, got '{}'",
                    kMinGraphs, kMaxGraphs, base::printable(name)));
  }
  return {.name = name,
          .task = property == "diameter" ? Task::kGraphRegression : Task::kNodeRegression,
          .metric = "log10_mse",
          .protocol = fmt::format("{} graphs for train, a quarter of that each for val and test; "
                                  "labels divided by the largest of train; best validation epoch",
                                  count),
          .source = fmt::format("made with seed {}", seed),
          .content = make_property_data(property, count, seed)};
}

}  // namespace

bool is_builtin(std::string_view name) {
  return head_of(name) == "board" || head_of(name) == "properties";
}

Dataset make_builtin(const std::string& name, std::uint64_t seed) {
  return head_of(name) == "board" ? make_board(name, seed) : make_properties(name, seed);
}

NodeData make_board_data(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  constexpr std::int64_t kFeatures = 7;
  Random random(seed);
  NodeData data;
  data.graph = graph::make_board(rows, columns);
  const std::int64_t n = data.graph.num_nodes();
  const std::vector<bool> is_mine = mark_cells(n, 0.2, random);
  const std::vector<bool> is_hidden = mark_cells(n, 0.5, random);
  data.target.assign(is_mine.begin(), is_mine.end());
  data.class_names = {"0", "1"};
  data.features = {.rows = n, .columns = kFeatures};
  data.features.values.assign(static_cast<std::size_t>(n * kFeatures), 0.0f);
  const auto row_ptr = data.graph.row_ptr();
  const auto col = data.graph.col();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto mines = std::count_if(col.begin() + row_ptr[i], col.begin() + row_ptr[i + 1],
                                     [&](std::int32_t j) { return is_mine[j]; });
    const std::int64_t feature =
        is_hidden[i] ? 0 : std::min<std::int64_t>(mines + 1, kFeatures - 1);
    data.features.values[i * kFeatures + feature] = 1.0f;
  }
  const std::vector<std::int32_t> class_of = classes_of(data);
  for (std::int64_t s = 0; s < kNumSplits; ++s) {
    data.splits.push_back(random_split("board", class_of, random.bits()));
  }
  return data;
}

}  // namespace mpssm::data
