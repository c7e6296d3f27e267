// SPDX-License-Identifier: MIT
#include "mpssm/data/edge_operators.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/incident_edges.h"
#include "mpssm/graph/edge_list.h"

namespace mpssm::data {
namespace {

constexpr const char* kWhere = "model.gso";
/// Far more than there are pairs of channels to spare.
constexpr std::size_t kMostValues = 64;

const EdgeColumn& column_named(const EdgeTable& table, const std::string& name) {
  std::string known;
  for (const EdgeColumn& column : table.columns) {
    if (column.name == name) return column;
    known += (known.empty() ? "" : ", ") + base::printable(column.name, 40);
  }
  throw base::Error({.where = kWhere,
                     .expected = known.empty()
                                     ? "a column of edges, of which nothing is known here "
                                       "but ends and weight"
                                     : "a column of edges, one of " + known,
                     .got = "'" + base::printable(name, 40) + "'"});
}

std::vector<std::string> values_of(const Dataset& dataset, const std::string& name) {
  const EdgeTable& table = edge_table_of(dataset);
  const auto* graphs = std::get_if<GraphsData>(&dataset.content);
  const Column fitted = fit_edge_column(
      column_named(table, name),
      graphs != nullptr ? edges_of_training(*graphs) : [](std::size_t) { return true; });
  const auto fail = [&](const std::string& got) {
    throw base::Error(
        {.where = kWhere,
         .expected = fmt::format("words or few whole numbers in column '{}' of the edges",
                                 base::printable(name, 40)),
         .got = got});
  };
  if (fitted.kind == ColumnKind::kNumber) fail("other numbers");
  if (fitted.categories.empty()) fail("no value");
  if (fitted.categories.size() > kMostValues) {
    fail(fmt::format("{} values", fitted.categories.size()));
  }
  for (const std::string& value : fitted.categories) {
    if (value.find_first_of("()\"\\") != std::string::npos || value != base::printable(value)) {
      fail(fmt::format("'{}', which model.gso cannot name", base::printable(value, 40)));
    }
  }
  return fitted.categories;
}

/// (dst, src) as one number, ordered as the entries of a graph are.
std::uint64_t key_of(std::int64_t dst, std::int64_t src) {
  return static_cast<std::uint64_t>(dst) << 32 | static_cast<std::uint64_t>(src);
}

/// Entries that rows with this value stand for, sorted.
std::vector<std::uint64_t> entries_with(const EdgeTable& table, const EdgeColumn& column,
                                        const std::string& value, bool both_ways) {
  const std::vector<bool> one_way =
      both_ways ? listed_one_way(table) : std::vector<bool>(table.src.size(), false);
  std::map<double, bool> is_it;  // of numbers met so far
  std::vector<std::uint64_t> keys;
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    const double number = column.values[row];
    if (std::isnan(number)) continue;
    auto found = is_it.find(number);
    if (found == is_it.end()) {
      found = is_it.emplace(number, edge_text(column, row) == value).first;
    }
    if (!found->second) continue;
    keys.push_back(key_of(table.dst[row], table.src[row]));
    if (one_way[row]) keys.push_back(key_of(table.src[row], table.dst[row]));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

const EdgeTable& edge_table_of(const Dataset& dataset) {
  return std::visit([](const auto& content) -> const EdgeTable& { return content.edge_table; },
                    dataset.content);
}

graph::Graph edges_with(const graph::Graph& graph, const EdgeTable& table,
                        const std::string& column, const std::string& value) {
  const std::vector<std::uint64_t> keys =
      entries_with(table, column_named(table, column), value, graph.is_symmetric());
  std::vector<graph::Graph> parts;
  auto next = keys.begin();
  for (std::int64_t g = 0; g < graph.num_graphs(); ++g) {
    const std::int64_t first = graph.graph_ptr()[g];
    graph::EdgeList edges{.num_nodes = graph.graph_ptr()[g + 1] - first};
    for (std::int64_t i = first; i < first + edges.num_nodes; ++i) {
      for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
        next = std::lower_bound(next, keys.end(), key_of(i, graph.col()[e]));
        if (next == keys.end() || *next != key_of(i, graph.col()[e])) continue;
        edges.src.push_back(graph.col()[e] - first);
        edges.dst.push_back(i - first);
        if (graph.is_weighted()) edges.weight.push_back(graph.weight()[e]);
      }
    }
    parts.push_back(graph::Graph::from_edges(edges, graph::Direction::kDirected));
  }
  return graph::make_batch(parts);
}

graph::Operators make_operators(const graph::Graph& graph, const graph::GsoGroups& groups,
                                const EdgeTable& table) {
  return graph::make_operators(graph, groups, [&](const graph::GsoShare& group) {
    return edges_with(graph, table, group.column, group.value);
  });
}

graph::GsoGroups with_values_of_edges(const graph::GsoGroups& groups, const Dataset& dataset) {
  graph::GsoGroups spread = groups;
  spread.groups.clear();
  for (const graph::GsoShare& group : groups.groups) {
    if (!group.column.empty()) column_named(edge_table_of(dataset), group.column);
    if (group.column.empty() || !group.value.empty()) {
      spread.groups.push_back(group);
      continue;
    }
    for (std::string& value : values_of(dataset, group.column)) {
      spread.groups.push_back(group);
      spread.groups.back().value = std::move(value);
    }
  }
  if (spread.is_single() && spread.is_of_edges()) {
    throw base::Error({.where = kWhere,
                       .expected = "another operator beside that of some of the edges",
                       .got = to_string(spread) + " alone"});
  }
  return spread;
}

}  // namespace mpssm::data
