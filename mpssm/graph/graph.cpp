// SPDX-License-Identifier: MIT
// Graph: from a checked edge list to sorted rows, and the disjoint union of graphs.
#include "mpssm/graph/graph.h"

#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <stdexcept>
#include <string>
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

void check_edges(const EdgeList& edges) {
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

// Row = source, columns in the order of the list: the transpose of what we want, unsorted.
Csr bucket_by_source(const EdgeList& edges) {
  const std::size_t count = edges.src.size();
  Csr matrix;
  matrix.row_ptr.assign(edges.num_nodes + 1, 0);
  matrix.col.resize(count);
  matrix.value.assign(count, 1.0);
  for (const std::int64_t source : edges.src) ++matrix.row_ptr[source + 1];
  for (std::int64_t i = 0; i < edges.num_nodes; ++i) matrix.row_ptr[i + 1] += matrix.row_ptr[i];
  std::vector<std::int64_t> next(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1);
  for (std::size_t e = 0; e < count; ++e) {
    const std::int64_t slot = next[edges.src[e]]++;
    matrix.col[slot] = static_cast<std::int32_t>(edges.dst[e]);
    if (!edges.weight.empty()) matrix.value[slot] = edges.weight[e];
  }
  return matrix;
}

// In place, on sorted rows.
void merge_repeats(Csr& matrix, bool add_weights) {
  std::int64_t end = 0;
  std::int64_t entry = 0;
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    const std::int64_t row_begin = end;
    for (const std::int64_t stop = matrix.row_ptr[i + 1]; entry < stop; ++entry) {
      if (end > row_begin && matrix.col[end - 1] == matrix.col[entry]) {
        if (add_weights) matrix.value[end - 1] += matrix.value[entry];
      } else {
        matrix.col[end] = matrix.col[entry];
        matrix.value[end] = matrix.value[entry];
        ++end;
      }
    }
    matrix.row_ptr[i + 1] = end;
  }
  matrix.col.resize(end);
  matrix.value.resize(end);
}

[[noreturn]] void fail_directions_differ(const EdgeList& edges, std::int64_t node, std::int64_t to,
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

// Union of the matrix and its transpose, which must agree where both have an entry.
Csr read_both_ways(const Csr& forward, const EdgeList& edges) {
  const Csr backward = transpose(forward);
  Csr both;
  both.row_ptr.reserve(forward.row_ptr.size());
  both.col.reserve(2 * forward.col.size());
  both.value.reserve(2 * forward.col.size());
  for (std::int64_t i = 0; i < forward.num_rows(); ++i) {
    std::int64_t f = forward.row_ptr[i];
    std::int64_t b = backward.row_ptr[i];
    const std::int64_t f_end = forward.row_ptr[i + 1];
    const std::int64_t b_end = backward.row_ptr[i + 1];
    while (f < f_end || b < b_end) {
      const bool take_forward = f < f_end && (b == b_end || forward.col[f] <= backward.col[b]);
      const bool take_backward = b < b_end && (f == f_end || backward.col[b] <= forward.col[f]);
      if (take_forward && take_backward && forward.value[f] != backward.value[b]) {
        fail_directions_differ(edges, forward.col[f], i, forward.value[f], backward.value[b]);
      }
      both.push_back(take_forward ? forward.col[f] : backward.col[b],
                     take_forward ? forward.value[f] : backward.value[b]);
      f += take_forward;
      b += take_backward;
    }
    both.end_row();
  }
  return both;
}

std::int64_t count_self_loops(const Csr& rows) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows.num_rows(); ++i) {
    for (std::int64_t e = rows.row_ptr[i]; e < rows.row_ptr[i + 1]; ++e) count += rows.col[e] == i;
  }
  return count;
}

bool equals_transpose(const Csr& rows) {
  const Csr transposed = transpose(rows);
  return has_same_pattern(rows, transposed) && rows.value == transposed.value;
}

}  // namespace

Graph::Graph() : data_(std::make_shared<const Data>()) {}

Graph::Graph(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Graph Graph::from_edges(const EdgeList& edges, Direction direction) {
  check_edges(edges);
  auto data = std::make_shared<Data>();
  data->graph_ptr = {0, edges.num_nodes};
  data->is_weighted = !edges.weight.empty();
  data->rows = transpose(bucket_by_source(edges));
  merge_repeats(data->rows, data->is_weighted);
  if (direction == Direction::kUndirected) data->rows = read_both_ways(data->rows, edges);
  data->num_self_loops = count_self_loops(data->rows);
  const auto entries = static_cast<std::int64_t>(data->rows.col.size());
  if (direction == Direction::kUndirected) {
    data->num_edges = (entries + data->num_self_loops) / 2;
  } else {
    data->num_edges = entries;
    data->is_symmetric = equals_transpose(data->rows);
  }
  return Graph(std::move(data));
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
