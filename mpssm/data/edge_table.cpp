// SPDX-License-Identifier: MIT
#include "mpssm/data/edge_table.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/data/cells.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/names.h"

namespace mpssm::data {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kAttributes = "edge_attr";
constexpr const char* kAttributeNames = "edge_attr_names";
constexpr const char* kListedEdges = "listed_edges";

std::string words_array(std::size_t column) { return fmt::format("edge_words_{}", column); }

// Words that are all numbers, spelled in another way than we would, are numbers.
void settle(EdgeColumn& column) {
  if (column.words.empty()) return;  // they are numbers already
  std::vector<double> numbers;
  for (const std::string& word : column.words) {
    const auto number = io::to_number(word);
    if (!number) return;
    numbers.push_back(*number);
  }
  for (double& value : column.values) {
    if (!std::isnan(value)) value = numbers[static_cast<std::size_t>(value)];
  }
  column.words.clear();
}

}  // namespace

EdgeColumns::EdgeColumns(const io::CsvHeader& table, const std::set<std::size_t>& used) {
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    if (used.contains(column)) continue;
    sources_.push_back(column);
    columns_.push_back({.name = table.header[column]});
  }
  number_of_.resize(columns_.size());
}

void EdgeColumns::add(std::span<const std::string_view> cells) {
  for (std::size_t c = 0; c < columns_.size(); ++c) add(c, cells[sources_[c]]);
}

void EdgeColumns::add(io::CsvRow row) {
  for (std::size_t c = 0; c < columns_.size(); ++c) add(c, row[sources_[c]]);
}

// Numbers as long as all are written the way we write them, then words: a dictionary of millions
// of different numbers would be large.
void EdgeColumns::add(std::size_t c, std::string_view cell) {
  EdgeColumn& column = columns_[c];
  if (is_missing(cell)) {
    column.values.push_back(kNothing);
    return;
  }
  auto& number_of = number_of_[c];
  const auto word_of = [&](std::string_view word) {
    const auto [found, is_new] = number_of.emplace(word, column.words.size());
    if (is_new) column.words.emplace_back(word);
    return static_cast<double>(found->second);
  };
  if (column.words.empty()) {
    const auto number = io::to_number(cell);
    if (number && io::number_text(*number) == cell) {
      column.values.push_back(*number);
      return;
    }
    for (double& value : column.values) {
      if (!std::isnan(value)) value = word_of(io::number_text(value));
    }
  }
  column.values.push_back(word_of(cell));
}

std::vector<EdgeColumn> EdgeColumns::take() {
  for (EdgeColumn& column : columns_) settle(column);
  return std::move(columns_);
}

void note_kept(const std::string& where, const EdgeTable& table, std::vector<std::string>& notes) {
  if (table.columns.empty()) return;
  std::vector<std::string> names;
  for (const EdgeColumn& column : table.columns) names.push_back(column.name);
  notes.push_back(
      fmt::format("{}: kept, used by the model with data.encodings=edges or model.gso only: {}",
                  where, listed("column", names)));
}

std::string edge_text(const EdgeColumn& column, std::size_t row) {
  const double value = column.values[row];
  if (std::isnan(value)) return {};
  return column.words.empty() ? io::number_text(value)
                              : column.words[static_cast<std::size_t>(value)];
}

std::vector<ListedEdge> listed_edges(const graph::Graph& graph, const EdgeTable& table,
                                     bool are_means) {
  const bool undirected = graph.is_symmetric();
  std::vector<ListedEdge> edges;
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (std::size_t row = 0; row < table.src.size() && !table.columns.empty(); ++row) {
    const std::int32_t src = table.src[row];
    const std::int32_t dst = table.dst[row];
    const auto heard = graph.col().subspan(
        static_cast<std::size_t>(graph.row_ptr()[dst]),
        static_cast<std::size_t>(graph.row_ptr()[dst + 1] - graph.row_ptr()[dst]));
    const auto found = std::lower_bound(heard.begin(), heard.end(), src);
    if (found == heard.end() || *found != src) continue;
    const bool is_new = seen.emplace(src, dst).second;
    const double weight = graph.weight()[graph.row_ptr()[dst] + (found - heard.begin())];
    edges.push_back({src, dst, is_new || are_means ? weight : 0.0, static_cast<std::int64_t>(row)});
  }
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t src = graph.col()[e];
      const auto dst = static_cast<std::int32_t>(i);
      if (undirected && src > dst) break;  // sorted: the rest is listed from its other end
      const bool is_listed = seen.contains({src, dst}) || (undirected && seen.contains({dst, src}));
      if (!is_listed) edges.push_back({src, dst, graph.weight()[e]});
    }
  }
  return edges;
}

EdgeTable read_edge_attributes(const io::Npz& npz, std::int64_t num_nodes,
                               std::span<const std::int32_t> src,
                               std::span<const std::int32_t> dst) {
  EdgeTable table;
  if (!npz.has(kAttributes)) return table;
  if (npz.has(kListedEdges)) {
    const std::vector<std::int64_t> ends =
        npz.integers(kListedEdges, std::vector<std::int64_t>{-1, 2});
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] < 0 || ends[i] >= num_nodes) {
        throw base::Error({.where = fmt::format("{}: array '{}': [{}, {}]", shown(npz.path()),
                                                kListedEdges, i / 2, i % 2),
                           .expected = fmt::format("a node in [0, {})", num_nodes),
                           .got = std::to_string(ends[i]),
                           .hint = "leave the array out: then edges are as in 'edges'"});
      }
      (i % 2 == 0 ? table.src : table.dst).push_back(static_cast<std::int32_t>(ends[i]));
    }
  } else {
    table.src.assign(src.begin(), src.end());
    table.dst.assign(dst.begin(), dst.end());
  }
  const std::int64_t rows = std::ssize(table.src);
  const auto shape = npz.header(kAttributes).shape;
  const bool is_line = shape.size() == 1;
  if (shape.empty() || shape.size() > 2 || shape[0] != rows) {
    throw base::Error({.where = fmt::format("{}: array '{}'", shown(npz.path()), kAttributes),
                       .expected = fmt::format("shape [{0}] or [{0}, features]", rows),
                       .got = shape.empty()
                                  ? "one number"
                                  : fmt::format("{} axes, the first of {}", shape.size(), shape[0]),
                       .hint = "one row for each edge, in their order; or leave it out"});
  }
  const std::vector<double> values = npz.doubles(
      kAttributes, is_line ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, -1});
  const std::int64_t width = is_line ? 1 : shape[1];
  std::vector<std::string> names;
  if (npz.has(kAttributeNames)) names = read_names(npz, kAttributeNames, width);
  npz.count_memory(kAttributes, values.size() * sizeof(double));
  for (std::int64_t c = 0; c < width; ++c) {
    EdgeColumn column{.name = !names.empty() ? names[c]
                              : width == 1   ? std::string(kAttributes)
                                             : fmt::format("{}_{}", kAttributes, c)};
    for (std::int64_t row = 0; row < rows; ++row) column.values.push_back(values[row * width + c]);
    if (npz.has(words_array(c))) {
      column.words = read_names(npz, words_array(c), -1);
      for (const double value : column.values) {
        const bool fits = std::isnan(value) || (value >= 0.0 && value == std::floor(value) &&
                                                value < static_cast<double>(column.words.size()));
        if (fits) continue;
        throw base::Error({.where = fmt::format("{}: array '{}'", shown(npz.path()), kAttributes),
                           .expected = fmt::format("numbers of the {} words of column {}",
                                                   column.words.size(), c),
                           .got = io::number_text(value),
                           .hint = "leave out the array of words"});
      }
    }
    table.columns.push_back(std::move(column));
  }
  return table;
}

void add_edge_attributes(const EdgeTable& table, std::map<std::string, io::Array>& arrays) {
  if (table.columns.empty()) return;
  const std::int64_t rows = std::ssize(table.src);
  const std::int64_t width = std::ssize(table.columns);
  std::vector<std::int64_t> ends;
  std::vector<double> values;
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    ends.insert(ends.end(), {table.src[row], table.dst[row]});
    for (const EdgeColumn& column : table.columns) values.push_back(column.values[row]);
  }
  arrays[kListedEdges] = io::make_array<std::int64_t>(ends, {rows, 2});
  arrays[kAttributes] = io::make_array<double>(values, {rows, width});
  std::vector<std::string> names;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    names.push_back(table.columns[c].name);
    if (!table.columns[c].words.empty()) {
      arrays[words_array(c)] = names_array(table.columns[c].words);
    }
  }
  arrays[kAttributeNames] = names_array(names);
}

}  // namespace mpssm::data
