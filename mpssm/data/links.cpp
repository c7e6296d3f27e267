// SPDX-License-Identifier: MIT
#include "mpssm/data/links.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/node_index.h"
#include "mpssm/data/tasks.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

constexpr std::int64_t kLeastEdges = 10;
constexpr double kHeldOutShare = 0.1;  // each of val and test

// All pairs that have no edge: for graphs so dense that drawing would not find them.
std::vector<NodePair> all_others(const graph::Graph& graph, bool directed) {
  std::vector<NodePair> others;
  const auto num_nodes = static_cast<std::int32_t>(graph.num_nodes());
  for (std::int32_t dst = 0; dst < num_nodes; ++dst) {
    for (std::int32_t src = 0; src < (directed ? num_nodes : dst); ++src) {
      if (src != dst && !has_edge(graph, {src, dst})) others.push_back({src, dst});
    }
  }
  return others;
}

// `count` different pairs without an edge, in random order.
std::vector<NodePair> draw_others(const std::string& where, const graph::Graph& graph,
                                  std::int64_t num_edges, std::int64_t count,
                                  base::Random& random) {
  const bool directed = !graph.is_symmetric();
  const std::int64_t n = graph.num_nodes();
  const std::int64_t there = n * (n - 1) / (directed ? 1 : 2) - num_edges;
  if (there < count) {
    throw base::Error({.where = where,
                       .expected = fmt::format("{} pairs of nodes without an edge", count),
                       .got = fmt::format("{} in a graph that is almost complete", there),
                       .hint = "there is nothing to tell edges from"});
  }
  constexpr std::int64_t kSparse = 4;
  if (there < kSparse * count) {
    std::vector<NodePair> others = all_others(graph, directed);
    random.shuffle_front(others, count);
    others.resize(static_cast<std::size_t>(count));
    return others;
  }
  std::set<NodePair> seen;
  std::vector<NodePair> others;
  while (std::ssize(others) < count) {
    const NodePair pair = draw_other(graph, directed, random);
    if (seen.insert(pair).second) others.push_back(pair);
  }
  return others;
}

// Pairs that a run has kept must be pairs of this graph.
void check_kept(const std::string& where, const Links& kept, const graph::Graph& graph) {
  for (const Part part : {Part::kVal, Part::kTest}) {
    const auto p = static_cast<std::size_t>(part);
    for (const bool is_edge : {true, false}) {
      for (const NodePair& pair : is_edge ? kept.edges[p] : kept.others[p]) {
        const bool is_inside = pair.src >= 0 && pair.dst >= 0 && pair.src < graph.num_nodes() &&
                               pair.dst < graph.num_nodes();
        if (is_inside && has_edge(graph, pair) == is_edge) continue;
        throw base::Error(where,
                          fmt::format("the run has held out pairs that are not in this graph, "
                                      "such as {} and {}",
                                      pair.src, pair.dst));
      }
    }
  }
}

std::optional<Part> part_named(const std::string& text) {
  if (text == "train" || text == "0") return Part::kTrain;
  if (text == "val" || text == "valid" || text == "validation" || text == "1") return Part::kVal;
  if (text == "test" || text == "2") return Part::kTest;
  return std::nullopt;
}

// A column 'split' of the edges. False: there is none.
bool take_stored_split(const std::string& where, NodeData& data, Links& links) {
  auto& columns = data.edge_table.columns;
  const auto column = std::find_if(columns.begin(), columns.end(),
                                   [](const EdgeColumn& one) { return one.name == "split"; });
  if (column == columns.end()) return false;
  const bool undirected = data.graph.is_symmetric();
  std::map<NodePair, Part> part_of;
  for (std::size_t row = 0; row < data.edge_table.src.size(); ++row) {
    NodePair pair{data.edge_table.src[row], data.edge_table.dst[row]};
    if (pair.src == pair.dst) continue;
    if (undirected && pair.src > pair.dst) std::swap(pair.src, pair.dst);
    const std::string text = edge_text(*column, row);
    const std::optional<Part> part = part_named(text);
    const auto [found, is_new] = part_of.emplace(pair, part.value_or(Part::kNone));
    if (part && (is_new || found->second == *part)) continue;
    throw base::Error({.where = fmt::format("{}: row {}: column 'split'", where, row + 1),
                       .expected = part ? "one part for an edge, however often it is listed"
                                        : "train, val or test",
                       .got = part ? "another one" : "'" + base::printable(text) + "'",
                       .hint = "without the column a tenth of the edges each is held out"});
  }
  for (const auto& [pair, part] : part_of) {
    if (part != Part::kTrain) links.edges[static_cast<std::size_t>(part)].push_back(pair);
  }
  for (const Part part : {Part::kTrain, Part::kVal, Part::kTest}) {
    const bool is_there = std::any_of(part_of.begin(), part_of.end(),
                                      [&](const auto& entry) { return entry.second == part; });
    if (is_there) continue;
    throw base::Error({.where = where + ": column 'split'",
                       .expected = fmt::format("at least one edge in {}", to_string(part)),
                       .got = "none",
                       .hint = "without the column a tenth of the edges each is held out"});
  }
  columns.erase(column);
  return true;
}

}  // namespace

std::vector<NodePair> pairs_of(const graph::Graph& graph) {
  const bool undirected = graph.is_symmetric();
  std::vector<NodePair> pairs;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t source = graph.col()[e];
      if (source == i) continue;
      if (undirected && source > i) break;  // sorted: the rest is listed from its other end
      pairs.push_back({source, static_cast<std::int32_t>(i)});
    }
  }
  return pairs;
}

bool has_edge(const graph::Graph& graph, NodePair pair) {
  const auto row = graph.col().subspan(
      static_cast<std::size_t>(graph.row_ptr()[pair.dst]),
      static_cast<std::size_t>(graph.row_ptr()[pair.dst + 1] - graph.row_ptr()[pair.dst]));
  return std::binary_search(row.begin(), row.end(), pair.src);
}

graph::Graph without_edges(const graph::Graph& graph, std::span<const NodePair> pairs) {
  const bool undirected = graph.is_symmetric();
  graph::CompactEdgeList edges{.num_nodes = graph.num_nodes()};
  auto next = pairs.begin();
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t source = graph.col()[e];
      if (undirected && source > i) break;
      const NodePair pair{source, static_cast<std::int32_t>(i)};
      while (next != pairs.end() && *next < pair) ++next;
      if (next != pairs.end() && *next == pair) continue;
      edges.src.push_back(pair.src);
      edges.dst.push_back(pair.dst);
      if (graph.is_weighted()) edges.weight.push_back(graph.weight()[e]);
    }
  }
  return graph::Graph::take_edges(
      std::move(edges), undirected ? graph::Direction::kUndirected : graph::Direction::kDirected);
}

NodePair draw_other(const graph::Graph& graph, bool directed, base::Random& random) {
  while (true) {
    NodePair pair{static_cast<std::int32_t>(random.below(graph.num_nodes())),
                  static_cast<std::int32_t>(random.below(graph.num_nodes()))};
    if (!directed && pair.src > pair.dst) std::swap(pair.src, pair.dst);
    if (pair.src != pair.dst && !has_edge(graph, pair)) return pair;
  }
}

std::vector<NodePair> read_pairs(const std::filesystem::path& path, const NodeData& data) {
  std::vector<std::string> names = data.node_ids;
  for (std::int64_t i = std::ssize(names); i < data.graph.num_nodes(); ++i) {
    names.push_back(std::to_string(i));
  }
  NodeIndex ids(names.size());
  for (const std::string& name : names) ids.add(name);
  io::CsvReader reader(path);
  const auto [src, dst] = end_columns(reader.head());
  std::vector<NodePair> pairs;
  while (reader.next()) {
    std::int32_t ends[2] = {};
    for (const std::size_t column : {src, dst}) {
      const std::int64_t node = ids.find(reader.cells()[column]);
      if (node < 0) {
        throw base::Error({.where = reader.place(column),
                           .expected = "a node of the graph",
                           .got = "'" + base::printable(reader.cells()[column]) + "'",
                           .hint = "nodes have the ids of the data that the run was trained on"});
      }
      ends[column == src ? 0 : 1] = static_cast<std::int32_t>(node);
    }
    if (ends[0] == ends[1]) {
      throw base::Error({.where = reader.place(dst),
                         .expected = "two different nodes",
                         .got = "the same twice",
                         .hint = "take the row out"});
    }
    pairs.push_back({ends[0], ends[1]});
  }
  if (pairs.empty()) {
    throw base::Error({.where = shown(path),
                       .expected = "at least one pair",
                       .got = "the header only",
                       .hint = "without --pairs the likeliest are listed"});
  }
  return pairs;
}

void hold_out_links(const std::string& where, const LoadOptions& options, Dataset& dataset,
                    NodeData& data) {
  Links links;
  links.whole = data.graph;
  std::vector<NodePair> pairs = pairs_of(data.graph);
  const std::int64_t num_edges = std::ssize(pairs);
  const bool is_new = options.columns != nullptr && options.links == nullptr;
  const bool only_predicts = is_new && options.skip_new_classes;
  if (options.links != nullptr) {
    check_kept(where, *options.links, data.graph);
    links.edges = options.links->edges;
    links.edges[0].clear();
    links.others = options.links->others;
  } else if (!only_predicts) {
    if (num_edges < kLeastEdges) {
      throw base::Error(
          {.where = where,
           .expected = fmt::format("at least {} edges, some of which can be held out", kLeastEdges),
           .got = std::to_string(num_edges),
           .hint = "take more of the graph, or another task"});
    }
    base::Random random(options.split_seed);
    const bool is_stored = !is_new && take_stored_split(where, data, links);
    if (!is_stored) {
      const auto count =
          static_cast<std::int64_t>(kHeldOutShare * static_cast<double>(num_edges) + 0.5);
      const std::int64_t parts = is_new ? 1 : 2;
      random.shuffle_front(pairs, parts * count);
      for (std::int64_t p = 0; p < parts; ++p) {
        std::vector<NodePair>& edges = links.edges[is_new ? 2 : static_cast<std::size_t>(p) + 1];
        edges.assign(pairs.begin() + p * count, pairs.begin() + (p + 1) * count);
        std::sort(edges.begin(), edges.end());
      }
    }
    const std::int64_t of_val = std::ssize(links.edges[1]);
    std::vector<NodePair> others =
        draw_others(where, data.graph, num_edges, of_val + std::ssize(links.edges[2]), random);
    links.others[1].assign(others.begin(), others.begin() + of_val);
    links.others[2].assign(others.begin() + of_val, others.end());
    for (const std::size_t part : {1, 2}) {
      std::sort(links.others[part].begin(), links.others[part].end());
    }
    dataset.protocol =
        fmt::format("{} of the edges, seed {}; as many pairs without an edge in {}",
                    is_stored ? "split by column 'split'"
                              : fmt::format("random {} split", is_new ? "90/0/10" : "80/10/10"),
                    options.split_seed, is_new ? "test" : "val and test");
  }
  std::vector<NodePair> held_out = links.edges[1];
  held_out.insert(held_out.end(), links.edges[2].begin(), links.edges[2].end());
  std::sort(held_out.begin(), held_out.end());
  const std::vector<NodePair> all = pairs_of(links.whole);
  std::set_difference(all.begin(), all.end(), held_out.begin(), held_out.end(),
                      std::back_inserter(links.edges[0]));
  data.graph = without_edges(links.whole, held_out);
  dataset.task = Task::kLinks;
  dataset.metric = default_metric(Task::kLinks);
  dataset.why = "data.task says so";
  data.target.assign(static_cast<std::size_t>(data.graph.num_nodes()), kNoLabel);
  data.links = std::move(links);
}

}  // namespace mpssm::data
