// SPDX-License-Identifier: MIT
// Graph: from a checked edge list to sorted rows, and the disjoint union of graphs.
#include "mpssm/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/graph/csr.h"

namespace mpssm::graph {

struct Graph::Data {
  Csr rows;
  std::vector<std::int64_t> graph_ptr = {0, 0};
  std::int64_t num_edges = 0;
  std::int64_t num_self_loops = 0;
  bool is_symmetric = true;
  bool is_weighted = false;
};

namespace {

constexpr std::int64_t kMaxNodes = std::numeric_limits<std::int32_t>::max();

constexpr const char* kFromEdges = "Graph::from_edges";

void check_size(const char* name, std::size_t size, std::size_t expected) {
  if (size == expected) return;
  throw base::Error({.where = kFromEdges,
                     .expected = fmt::format("{} of size {} (the size of src)", name, expected),
                     .got = std::to_string(size)});
}

template <typename Edges>
void check_edges(const Edges& edges) {
  if (edges.num_nodes < 0 || edges.num_nodes > kMaxNodes) {
    throw base::Error({.where = kFromEdges,
                       .expected = fmt::format("num_nodes in [0, {}]", kMaxNodes),
                       .got = std::to_string(edges.num_nodes)});
  }
  check_size("dst", edges.dst.size(), edges.src.size());
  if (!edges.weight.empty()) check_size("weight", edges.weight.size(), edges.src.size());
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    for (const std::int64_t node : {edges.src[e], edges.dst[e]}) {
      if (node < 0 || node >= edges.num_nodes) {
        throw base::Error(kFromEdges, fmt::format("edge {}: node {} out of range [0, {})", e, node,
                                                  edges.num_nodes));
      }
    }
    if (!edges.weight.empty() && !std::isfinite(edges.weight[e])) {
      throw base::Error(
          kFromEdges, fmt::format("edge {}: expected a finite weight, got {}", e, edges.weight[e]));
    }
  }
}

// An entry on its way: its column, and whether the edge was read backwards.
std::int32_t key_of(std::int64_t column, bool is_backward) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(column) << 1 | (is_backward ? 1 : 0));
}
std::int32_t column_of(std::int32_t key) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(key) >> 1);
}
bool is_backward(std::int32_t key) { return (key & 1) != 0; }
bool is_before(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint32_t>(a) < static_cast<std::uint32_t>(b);
}

// Every entry into its row, as a key, in the order of the list; no values without weights. A
// self-loop is its own reverse and comes once.
template <typename Edges>
Csr bucket_by_row(const Edges& edges, Direction direction) {
  const bool both_ways = direction == Direction::kUndirected;
  const std::size_t count = edges.src.size();
  Csr rows;
  rows.row_ptr.assign(edges.num_nodes + 1, 0);
  for (std::size_t e = 0; e < count; ++e) {
    ++rows.row_ptr[edges.dst[e] + 1];
    if (both_ways && edges.src[e] != edges.dst[e]) ++rows.row_ptr[edges.src[e] + 1];
  }
  for (std::int64_t i = 0; i < edges.num_nodes; ++i) rows.row_ptr[i + 1] += rows.row_ptr[i];
  rows.col.resize(rows.row_ptr.back());
  if (!edges.weight.empty()) rows.value.resize(rows.row_ptr.back());
  std::vector<std::int64_t> next(rows.row_ptr.begin(), rows.row_ptr.end() - 1);
  const auto put = [&](std::int64_t row, std::int32_t key, std::size_t e) {
    const std::int64_t slot = next[row]++;
    rows.col[slot] = key;
    if (!edges.weight.empty()) rows.value[slot] = edges.weight[e];
  };
  for (std::size_t e = 0; e < count; ++e) {
    put(edges.dst[e], key_of(edges.src[e], false), e);
    if (both_ways && edges.src[e] != edges.dst[e]) put(edges.src[e], key_of(edges.dst[e], true), e);
  }
  return rows;
}

// Sorts the entries of a row; equal keys keep their order, so that sums over them keep their bits.
class RowSorter {
 public:
  void sort(std::span<std::int32_t> keys, std::span<double> values) {
    if (std::ssize(keys) <= kShortRow) {
      insert_one_by_one(keys, values);
    } else if (values.empty()) {
      std::sort(keys.begin(), keys.end(), is_before);
    } else {
      sort_pairs(keys, values);
    }
  }

 private:
  static constexpr std::ptrdiff_t kShortRow = 32;

  static void insert_one_by_one(std::span<std::int32_t> keys, std::span<double> values) {
    for (std::size_t e = 1; e < keys.size(); ++e) {
      const std::int32_t key = keys[e];
      const double value = values.empty() ? 0.0 : values[e];
      std::size_t slot = e;
      for (; slot > 0 && is_before(key, keys[slot - 1]); --slot) {
        keys[slot] = keys[slot - 1];
        if (!values.empty()) values[slot] = values[slot - 1];
      }
      keys[slot] = key;
      if (!values.empty()) values[slot] = value;
    }
  }

  void sort_pairs(std::span<std::int32_t> keys, std::span<double> values) {
    pairs_.clear();
    for (std::size_t e = 0; e < keys.size(); ++e) pairs_.emplace_back(keys[e], values[e]);
    std::stable_sort(pairs_.begin(), pairs_.end(),
                     [](const auto& a, const auto& b) { return is_before(a.first, b.first); });
    for (std::size_t e = 0; e < keys.size(); ++e) std::tie(keys[e], values[e]) = pairs_[e];
  }

  std::vector<std::pair<std::int32_t, double>> pairs_;
};

template <typename Edges>
[[noreturn]] void fail_directions_differ(const Edges& edges, std::int64_t node, std::int64_t to,
                                         double weight, double backward_weight) {
  std::size_t e = 0;
  while (edges.src[e] != node || edges.dst[e] != to) ++e;
  // {} writes as few digits as tell a number from every other: 0.1 and 0.10000000000000002.
  throw base::Error(
      {.where = kFromEdges,
       .what = fmt::format("edge {}: weight {} from node {} to node {}, but {} backwards", e,
                           weight, node, to, backward_weight),
       .hint = "expected one weight, or Direction::kDirected"});
}

// What the entries of one row and column add up to, by direction.
struct Sum {
  double value = 0.0;
  bool is_there = false;

  void add(double weight) {
    value = is_there ? value + weight : weight;
    is_there = true;
  }
};

// Sorts each row, merges its repeats and turns keys into columns, in place. Where both directions
// are listed, they must agree. `edges` is looked at to name one that does not.
template <typename Edges>
void settle_rows(Csr& rows, const Edges& edges) {
  const bool is_weighted = !rows.value.empty();
  RowSorter sorter;
  std::int64_t end = 0;
  std::int64_t entry = 0;
  for (std::int64_t i = 0; i < rows.num_rows(); ++i) {
    const std::int64_t stop = rows.row_ptr[i + 1];
    const std::int64_t size = stop - entry;
    sorter.sort(std::span(rows.col).subspan(entry, size),
                is_weighted ? std::span(rows.value).subspan(entry, size) : std::span<double>());
    while (entry < stop) {
      const std::int32_t column = column_of(rows.col[entry]);
      Sum forward;
      Sum backward;
      for (; entry < stop && column_of(rows.col[entry]) == column; ++entry) {
        if (is_weighted) (is_backward(rows.col[entry]) ? backward : forward).add(rows.value[entry]);
      }
      if (forward.is_there && backward.is_there && forward.value != backward.value) {
        fail_directions_differ(edges, column, i, forward.value, backward.value);
      }
      rows.col[end] = column;
      if (is_weighted) rows.value[end] = forward.is_there ? forward.value : backward.value;
      ++end;
    }
    rows.row_ptr[i + 1] = end;
  }
  rows.col.resize(end);
  if (is_weighted) rows.value.resize(end);
  // Lists that name each edge both ways would leave half of it unused.
  if (rows.col.capacity() - rows.col.size() > rows.col.size() / 8) {
    rows.col.shrink_to_fit();
    rows.value.shrink_to_fit();
  }
}

std::int64_t count_self_loops(const Csr& rows) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows.num_rows(); ++i) {
    for (std::int64_t e = rows.row_ptr[i]; e < rows.row_ptr[i + 1]; ++e) count += rows.col[e] == i;
  }
  return count;
}

}  // namespace

Graph::Graph() : data_(std::make_shared<const Data>()) {}

Graph::Graph(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

template <typename Edges>
Graph Graph::build(Edges& edges, Direction direction) {
  check_edges(edges);
  auto data = std::make_shared<Data>();
  data->graph_ptr = {0, edges.num_nodes};
  data->is_weighted = !edges.weight.empty();
  data->rows = bucket_by_row(edges, direction);
  if constexpr (!std::is_const_v<Edges>) {
    if (!data->is_weighted) edges = {};  // only weights can disagree
  }
  settle_rows(data->rows, edges);
  if constexpr (!std::is_const_v<Edges>) edges = {};
  if (!data->is_weighted) data->rows.value.assign(data->rows.col.size(), 1.0);
  data->num_self_loops = count_self_loops(data->rows);
  const auto entries = static_cast<std::int64_t>(data->rows.col.size());
  if (direction == Direction::kUndirected) {
    data->num_edges = (entries + data->num_self_loops) / 2;
  } else {
    data->num_edges = entries;
    data->is_symmetric = symmetry_of(data->rows).values;
  }
  return Graph(std::move(data));
}

Graph Graph::from_edges(const EdgeList& edges, Direction direction) {
  return build(edges, direction);
}

Graph Graph::take_edges(CompactEdgeList edges, Direction direction) {
  return build(edges, direction);
}

std::int64_t Graph::num_nodes() const { return data_->rows.num_rows(); }
std::int64_t Graph::num_entries() const {
  return static_cast<std::int64_t>(data_->rows.col.size());
}
std::int64_t Graph::num_edges() const { return data_->num_edges; }
std::int64_t Graph::num_self_loops() const { return data_->num_self_loops; }
bool Graph::is_symmetric() const { return data_->is_symmetric; }
bool Graph::is_weighted() const { return data_->is_weighted; }
std::span<const std::int64_t> Graph::row_ptr() const { return data_->rows.row_ptr; }
std::span<const std::int32_t> Graph::col() const { return data_->rows.col; }
std::span<const double> Graph::weight() const { return data_->rows.value; }
std::span<const std::int64_t> Graph::graph_ptr() const { return data_->graph_ptr; }
std::int64_t Graph::num_graphs() const {
  return static_cast<std::int64_t>(data_->graph_ptr.size()) - 1;
}

Graph make_batch(std::span<const Graph> graphs) {
  std::int64_t nodes = 0;
  std::int64_t entries = 0;
  for (const Graph& graph : graphs) {
    nodes += graph.num_nodes();
    entries += graph.num_entries();
  }
  if (nodes > kMaxNodes) {
    throw std::invalid_argument(
        fmt::format("make_batch: expected at most {} nodes in all, got {}", kMaxNodes, nodes));
  }
  auto data = std::make_shared<Graph::Data>();
  data->graph_ptr = {0};
  data->rows.row_ptr.reserve(nodes + 1);
  data->rows.col.reserve(entries);
  data->rows.value.reserve(entries);
  for (const Graph& graph : graphs) {
    const std::int64_t first_node = data->rows.num_rows();
    const std::int64_t first_entry = data->rows.row_ptr.back();
    const Graph::Data& part = *graph.data_;
    for (std::size_t g = 1; g < part.graph_ptr.size(); ++g) {
      data->graph_ptr.push_back(first_node + part.graph_ptr[g]);
    }
    for (std::size_t i = 1; i < part.rows.row_ptr.size(); ++i) {
      data->rows.row_ptr.push_back(first_entry + part.rows.row_ptr[i]);
    }
    for (const std::int32_t column : part.rows.col) {
      data->rows.col.push_back(static_cast<std::int32_t>(first_node + column));
    }
    data->rows.value.insert(data->rows.value.end(), part.rows.value.begin(), part.rows.value.end());
    data->num_edges += part.num_edges;
    data->num_self_loops += part.num_self_loops;
    data->is_symmetric = data->is_symmetric && part.is_symmetric;
    data->is_weighted = data->is_weighted || part.is_weighted;
  }
  return Graph(std::move(data));
}

}  // namespace mpssm::graph
