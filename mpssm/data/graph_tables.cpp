// SPDX-License-Identifier: MIT
// Tables as graphs: the ids of the nodes, the ends and weights of the edges.
#include "mpssm/data/graph_tables.h"

#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/nearest.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/cells.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"

namespace mpssm::data {
namespace {

using Ends = std::pair<std::size_t, std::size_t>;  // columns

std::string header_of(const io::CsvHeader& table) {
  std::string names;
  for (const std::string& name : table.header) names += (names.empty() ? "" : ", ") + name;
  return base::printable(names, 200);
}

std::optional<Ends> find_ends(const io::CsvHeader& table) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kNames = {
      {{"src", "dst"}, {"source", "target"}, {"from", "to"}}};
  for (const auto& [first, second] : kNames) {
    const auto a = table.column(first);
    const auto b = table.column(second);
    if (a && b) return Ends(*a, *b);
  }
  return std::nullopt;
}

double weight_of(std::string_view cell, bool decimal_comma,
                 const std::function<std::string()>& place) {
  auto number = io::to_number(cell);
  if (!number) number = parse_number(cell, decimal_comma);
  if (number && std::abs(*number) <= std::numeric_limits<float>::max()) return *number;
  throw base::Error(place(), fmt::format("expected a {}, got '{}'",
                                         number ? "number that fits 32 bits" : "finite number",
                                         base::printable(cell)));
}

// Some rows of a table of edges: enough of them that their nodes can be looked up side by side.
class EdgeRows {
 public:
  explicit EdgeRows(io::CsvReader& reader)
      : reader_(reader),
        ends_(end_columns(reader.head())),
        weight_(reader.head().column("weight")),
        others_(reader.head(), {ends_.first, ends_.second, weight_.value_or(ends_.first)}) {}

  bool has_weights() const { return weight_.has_value(); }
  std::size_t size() const { return lines_.size(); }
  std::span<const std::string_view> ids() const { return ids_; }  // src and dst of each row

  /// False: those were the last. A fault of a row that follows is kept until these are done with,
  /// so that the first one in the file is told.
  bool read() {
    if (fault_) std::rethrow_exception(fault_);
    constexpr std::size_t kRows = 32;
    ids_.clear();
    weights_.clear();
    lines_.clear();
    try {
      while (size() < kRows && reader_.next()) {
        ids_.push_back(reader_.cells()[ends_.first]);
        ids_.push_back(reader_.cells()[ends_.second]);
        if (weight_) weights_.push_back(reader_.cells()[*weight_]);
        others_.add(reader_.cells());
        lines_.push_back(reader_.line());
      }
    } catch (const base::Error&) {
      fault_ = std::current_exception();
      return true;
    }
    return size() == kRows;
  }

  std::string place(std::size_t id) const {
    return reader_.place(lines_[id / 2], id % 2 == 0 ? ends_.first : ends_.second);
  }
  EdgeColumns& others() { return others_; }
  double weight(std::size_t row) const {
    // A table whose cells are not separated by commas may have them in its numbers.
    const bool decimal_comma = reader_.head().separator != ',';
    return weight_of(weights_[row], decimal_comma,
                     [&] { return reader_.place(lines_[row], *weight_); });
  }

 private:
  io::CsvReader& reader_;
  Ends ends_;
  std::optional<std::size_t> weight_;
  EdgeColumns others_;
  std::vector<std::string_view> ids_;
  std::vector<std::string_view> weights_;
  std::vector<std::int64_t> lines_;
  std::exception_ptr fault_;
};

// Row by row, each end by node_of(rows, id); the number of nodes is left to the caller.
template <typename NodeOf>
graph::CompactEdgeList list_edges(io::CsvReader& reader, const NodeIndex& ids,
                                  const NodeOf& node_of, EdgeTable& kept) {
  EdgeRows rows(reader);
  graph::CompactEdgeList edges;
  const std::size_t max_rows = reader.max_rows();
  edges.src.reserve(max_rows);
  edges.dst.reserve(max_rows);
  if (rows.has_weights()) edges.weight.reserve(max_rows);
  for (bool goes_on = true; goes_on;) {
    goes_on = rows.read();
    ids.prefetch(rows.ids());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      edges.src.push_back(static_cast<std::int32_t>(node_of(rows, 2 * row)));
      edges.dst.push_back(static_cast<std::int32_t>(node_of(rows, 2 * row + 1)));
      if (rows.has_weights()) edges.weight.push_back(rows.weight(row));
    }
  }
  if (!rows.others().empty()) {
    kept = {.src = edges.src, .dst = edges.dst, .columns = rows.others().take()};
  }
  return edges;
}

// Two ways with two weights make a directed graph, unless it must not be one.
graph::Graph graph_of(const std::filesystem::path& path, graph::CompactEdgeList edges,
                      const LoadOptions& options, std::vector<std::string>& notes) {
  if (options.directed == EdgeUse::kBackward) edges.src.swap(edges.dst);
  if (options.directed.value_or(EdgeUse::kBoth) != EdgeUse::kBoth) {
    return make_graph(shown(path), std::move(edges), graph::Direction::kDirected);
  }
  if (options.directed || edges.weight.empty()) {
    return make_graph(shown(path), std::move(edges), graph::Direction::kUndirected);
  }
  try {
    return make_graph(shown(path), edges, graph::Direction::kUndirected);
  } catch (const base::Error& error) {
    if (error.text().hint.empty()) throw;
    notes.push_back(shown(path) + ": " + error.text().what +
                    ": edges run one way, from the first column to the second");
  }
  return make_graph(shown(path), std::move(edges), graph::Direction::kDirected);
}

}  // namespace

std::pair<std::size_t, std::size_t> end_columns(const io::CsvHeader& table) {
  if (const auto ends = find_ends(table)) return *ends;
  throw base::Error(shown(table.path) +
                    ": expected columns 'src' and 'dst' (or 'source' and 'target', or 'from' "
                    "and 'to'), got " +
                    header_of(table));
}

std::size_t need_column(const io::CsvHeader& table, const std::string& name, const char* advice) {
  if (const auto column = table.column(name)) return *column;
  const std::vector<std::string_view> names(table.header.begin(), table.header.end());
  const std::string_view near = base::nearest(name, names);
  throw base::Error(
      shown(table.path),
      fmt::format("expected a column '{}', got {}{}{}", base::printable(name), header_of(table),
                  near.empty() ? "" : " (did you mean '" + base::printable(near) + "'?)", advice));
}

std::size_t id_column(const io::CsvHeader& table, const LoadOptions& options) {
  if (!options.id.empty()) return need_column(table, options.id, "; data.id names the ids");
  for (const char* name : {"id", "node_id", "node", "ID", "Id"}) {
    if (const auto column = table.column(name)) return *column;
  }
  return need_column(table, "id", "; data.id names the column of ids");
}

NodeIndex index_ids(const io::CsvTable& table, std::size_t column) {
  if (table.rows.empty()) {
    throw base::Error(shown(table.path) + ": expected at least one node, got the header only");
  }
  NodeIndex ids(table.rows.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view id = table.rows[row][column];
    if (id.empty()) throw base::Error(table.place(row, column) + ": expected an id, got none");
    const auto [first, is_new] = ids.add(id);
    if (is_new) continue;
    throw base::Error(table.place(row, column),
                      fmt::format("expected each id once, got '{}' again, first in line {}",
                                  base::printable(id), table.line[first]));
  }
  return ids;
}

bool has_ends(const io::CsvHeader& table) { return find_ends(table).has_value(); }

graph::Graph read_graph(io::CsvReader given, const NodeIndex& ids, const LoadOptions& options,
                        EdgeTable& kept, std::vector<std::string>& notes) {
  const std::filesystem::path path = given.head().path;
  std::optional<io::CsvReader> reader(std::move(given));
  const auto node_of = [&](const EdgeRows& rows, std::size_t i) {
    const std::string_view id = rows.ids()[i];
    const std::int64_t node = ids.find(id);
    if (node >= 0) return node;
    throw base::Error(rows.place(i), fmt::format("expected an id of the table of nodes, got '{}'",
                                                 base::printable(id)));
  };
  graph::CompactEdgeList edges = list_edges(*reader, ids, node_of, kept);
  note_kept(shown(path), kept, notes);
  if (options.directed == EdgeUse::kBackward) kept.src.swap(kept.dst);
  reader.reset();  // gone with its text before the graph is made
  edges.num_nodes = ids.size();
  return graph_of(path, std::move(edges), options, notes);
}

CollectedGraph collect_graph(io::CsvReader given, const LoadOptions& options) {
  CollectedGraph result;
  std::optional<io::CsvReader> reader(std::move(given));
  const io::CsvHeader head = reader->head();
  NodeIndex ids(reader->max_rows());
  const auto node_of = [&](const EdgeRows& rows, std::size_t i) {
    const std::string_view id = rows.ids()[i];
    if (id.empty()) throw base::Error(rows.place(i) + ": expected an id, got none");
    const auto [node, is_new] = ids.add(id);
    if (is_new) result.node_ids.emplace_back(id);
    return node;
  };
  graph::CompactEdgeList edges = list_edges(*reader, ids, node_of, result.edge_table);
  reader.reset();
  if (edges.src.empty()) {
    throw base::Error(shown(head.path) + ": expected at least one edge, got the header only");
  }
  edges.num_nodes = ids.size();
  note_kept(shown(head.path), result.edge_table, result.notes);
  result.graph = graph_of(head.path, std::move(edges), options, result.notes);
  return result;
}

}  // namespace mpssm::data
