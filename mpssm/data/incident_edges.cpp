// SPDX-License-Identifier: MIT
#include "mpssm/data/incident_edges.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/npz.h"

namespace mpssm::data {
namespace {

std::string value_text(const EdgeColumn& column, double value) {
  return column.words.empty() ? io::number_text(value)
                              : column.words[static_cast<std::size_t>(value)];
}

std::int64_t width_of_edge_column(const Column& column) {
  return column.kind == ColumnKind::kNumber ? 1 : std::ssize(column.categories);
}

const EdgeColumn& find_edge_column(const EdgeTable& table, const std::string& name) {
  for (const EdgeColumn& column : table.columns) {
    if (column.name == name) return column;
  }
  throw base::Error(fmt::format("edges: expected a column '{}', which the model was trained with",
                                base::printable(name)));
}

}  // namespace

Column fit_edge_column(const EdgeColumn& column, const std::function<bool(std::size_t)>& counts) {
  constexpr std::size_t kMostWhole = 16;
  Column fitted{.name = column.name, .kind = ColumnKind::kCategories};
  std::set<double> seen;
  double count = 0.0;
  double sum = 0.0;
  double squares = 0.0;
  bool is_number = false;
  for (std::size_t row = 0; row < column.values.size(); ++row) {
    const double value = column.values[row];
    if (std::isnan(value) || !counts(row)) continue;
    count += 1.0;
    sum += value;
    squares += value * value;
    if (!is_number) seen.insert(value);
    is_number = is_number ||
                (column.words.empty() && (value != std::floor(value) || seen.size() > kMostWhole));
  }
  if (is_number) {
    fitted.kind = ColumnKind::kNumber;
    fitted.mean = sum / count;
    const double deviation = std::sqrt(std::max(squares / count - fitted.mean * fitted.mean, 0.0));
    fitted.scale = deviation > 0.0 ? deviation : 1.0;
    return fitted;
  }
  for (const double value : seen) fitted.categories.push_back(value_text(column, value));
  return fitted;
}

std::vector<Column> fit_edge_columns(const EdgeTable& table,
                                     const std::function<bool(std::size_t)>& counts) {
  std::vector<Column> columns;
  for (const EdgeColumn& column : table.columns) {
    columns.push_back(fit_edge_column(column, counts));
  }
  return columns;
}

std::function<bool(std::size_t)> edges_of_training(const GraphsData& data) {
  return [&data](std::size_t row) {
    const auto after = std::upper_bound(data.node_ptr.begin(), data.node_ptr.end(),
                                        std::int64_t{data.edge_table.src[row]});
    return data.part[after - data.node_ptr.begin() - 1] == Part::kTrain;
  };
}

std::vector<bool> listed_one_way(const EdgeTable& table) {
  const auto key = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
  };
  std::vector<std::uint64_t> keys;
  keys.reserve(table.src.size());
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    keys.push_back(key(table.src[row], table.dst[row]));
  }
  std::sort(keys.begin(), keys.end());
  std::vector<bool> one_way(table.src.size());
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    one_way[row] =
        table.src[row] != table.dst[row] &&
        !std::binary_search(keys.begin(), keys.end(), key(table.dst[row], table.src[row]));
  }
  return one_way;
}

std::int64_t edge_features(std::span<const Column> columns) {
  std::int64_t width = 0;
  for (const Column& column : columns) width += width_of_edge_column(column);
  return width;
}

Matrix incident_sums(const EdgeTable& table, std::span<const Column> columns,
                     std::int64_t num_nodes, bool both_ways) {
  Matrix sums{.rows = num_nodes, .columns = edge_features(columns), .values = {}};
  std::vector<double> total(static_cast<std::size_t>(sums.rows * sums.columns), 0.0);
  const std::vector<bool> one_way =
      both_ways ? listed_one_way(table) : std::vector<bool>(table.src.size(), false);
  std::int64_t first = 0;
  for (const Column& fitted : columns) {
    const EdgeColumn& column = find_edge_column(table, fitted.name);
    if (fitted.kind == ColumnKind::kNumber && !column.words.empty()) {
      throw base::Error(fmt::format("edges: expected numbers in column '{}', got '{}'",
                                    base::printable(fitted.name),
                                    base::printable(column.words[0])));
    }
    std::unordered_map<std::string, std::int64_t> place_of;
    for (const std::string& category : fitted.categories) {
      place_of.emplace(category, std::ssize(place_of));
    }
    std::map<double, std::int64_t> place;  // of values met so far; -1: none
    for (std::size_t row = 0; row < table.src.size(); ++row) {
      const double value = column.values[row];
      if (std::isnan(value)) continue;
      std::int64_t at = first;
      double added = 1.0;
      if (fitted.kind == ColumnKind::kNumber) {
        added = (value - fitted.mean) / fitted.scale;
      } else {
        auto found = place.find(value);
        if (found == place.end()) {
          const auto known = place_of.find(value_text(column, value));
          found = place.emplace(value, known == place_of.end() ? -1 : known->second).first;
        }
        if (found->second < 0) continue;
        at += found->second;
      }
      total[table.dst[row] * sums.columns + at] += added;
      if (one_way[row]) total[table.src[row] * sums.columns + at] += added;
    }
    first += width_of_edge_column(fitted);
  }
  sums.values.assign(total.begin(), total.end());
  return sums;
}

void read_bonds(Dataset& dataset) {
  constexpr const char* kBonds = "bond_feat";
  auto* data = std::get_if<GraphsData>(&dataset.content);
  if (data == nullptr || dataset.files.size() != 1 || !data->edge_table.columns.empty()) return;
  if (!dataset.files[0].path.ends_with(".npz")) return;
  const io::Npz npz = io::Npz::open(dataset.files[0].path);
  if (!npz.has(kBonds)) return;
  const std::int64_t rows = data->edge_ptr.back();
  const std::vector<std::int64_t> codes = npz.integers(kBonds, std::vector<std::int64_t>{rows, -1});
  const std::int64_t columns = rows == 0 ? 0 : std::ssize(codes) / rows;
  EdgeTable& table = data->edge_table;
  for (std::int64_t c = 0; c < columns; ++c) {
    EdgeColumn column{.name = fmt::format("bond_{}", c)};
    column.values.reserve(static_cast<std::size_t>(rows));
    for (std::int64_t e = 0; e < rows; ++e) {
      column.values.push_back(static_cast<double>(codes[e * columns + c]));
    }
    table.columns.push_back(std::move(column));
  }
  for (std::int64_t g = 0; g < data->num_graphs() && columns > 0; ++g) {
    const auto first = static_cast<std::int32_t>(data->node_ptr[g]);
    for (std::int64_t e = data->edge_ptr[g]; e < data->edge_ptr[g + 1]; ++e) {
      table.src.push_back(first + data->edge_src[e]);
      table.dst.push_back(first + data->edge_dst[e]);
    }
  }
}

}  // namespace mpssm::data
