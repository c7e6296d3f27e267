// SPDX-License-Identifier: MIT
#include "mpssm/data/attribute_table.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

void AttributeTable::set(std::string_view name, std::string_view value) {
  constexpr std::size_t kMaxColumns = 10'000;
  const auto [found, is_new] = number_of_.emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    names_.emplace_back(name);
    if (names_.size() > kMaxColumns || name.empty()) {
      throw base::Error(
          {.where = where_,
           .expected = fmt::format("at most {} attributes, each with a name", kMaxColumns),
           .got = name.empty() ? "one without" : "more"});
    }
  }
  rows_.back().emplace_back(found->second, io::csv_cell(value));
}

void AttributeTable::leave_out(std::string_view name) {
  if (std::find(left_out_.begin(), left_out_.end(), name) == left_out_.end()) {
    left_out_.emplace_back(name);
  }
}

std::string AttributeTable::take() {
  std::string text;
  for (const std::string& name : names_) text += (text.empty() ? "" : ",") + io::csv_cell(name);
  text += "\n";
  std::vector<std::string> cells(names_.size());
  for (auto& row : rows_) {
    std::fill(cells.begin(), cells.end(), std::string());
    for (auto& [column, value] : row) cells[column] = std::move(value);
    row.clear();
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) text += ",";
      text += cells[column];
    }
    text += "\n";
  }
  rows_.clear();
  return text;
}

Dataset read_attribute_graph(const std::filesystem::path& path, AttributeGraph graph,
                             const LoadOptions& given) {
  const std::string& ends = graph.edges.where();
  if (graph.nodes.empty()) {
    throw base::Error({.where = graph.nodes.where(),
                       .expected = "at least one",
                       .got = "none",
                       .hint = "a graph needs nodes"});
  }
  if (!graph.edges.has("source") || !graph.edges.has("target")) {
    throw base::Error({.where = ends,
                       .expected = "edges with 'source' and 'target'",
                       .got = "none",
                       .hint = "a graph without edges has nothing to send messages along"});
  }
  LoadOptions options = given;
  if (graph.directed && !options.directed) options.directed = EdgeUse::kForward;
  Dataset dataset =
      read_node_tables(io::read_csv(io::CsvReader(graph.nodes.where(), graph.nodes.take())),
                       io::CsvReader(ends, graph.edges.take()), options);
  dataset.source = shown(path);
  for (const AttributeTable* table : {&graph.nodes, &graph.edges}) {
    if (table->left_out().empty()) continue;
    dataset.notes.push_back(table->where() + ": not used, since a table cannot hold them: " +
                            listed("attribute", table->left_out()));
  }
  return dataset;
}

}  // namespace mpssm::data
