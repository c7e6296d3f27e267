// SPDX-License-Identifier: MIT
// Edge lists out of files: range checks, and one weight for both directions.
#include "mpssm/data/edges.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

// An undirected pair with what each direction adds up to.
struct Pair {
  std::int32_t low;
  std::int32_t high;
  double up;
  double down;

  bool same_ends(const Pair& other) const { return low == other.low && high == other.high; }
};

std::vector<Pair> collect_pairs(const graph::CompactEdgeList& edges) {
  std::vector<Pair> pairs;
  pairs.reserve(edges.src.size());
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    const auto [low, high] = std::minmax(edges.src[e], edges.dst[e]);
    const double weight = std::abs(edges.weight[e]);
    const bool up = edges.src[e] == low;
    pairs.push_back({low, high, up ? weight : 0.0, up ? 0.0 : weight});
    if (low == high) pairs.back().down = weight;
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return a.low != b.low ? a.low < b.low : a.high < b.high;
  });
  std::size_t end = 0;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (end > 0 && pairs[end - 1].same_ends(pairs[p])) {
      pairs[end - 1].up += pairs[p].up;
      pairs[end - 1].down += pairs[p].down;
    } else {
      pairs[end++] = pairs[p];
    }
  }
  pairs.resize(end);
  return pairs;
}

// Sums of doubles cannot overflow here: each weight that is too large alone is too large in a sum.
void check_row_sums(const std::string& where, const graph::Graph& graph) {
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    double sum = 0.0;
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      sum += std::abs(graph.weight()[e]);
    }
    if (sum <= std::numeric_limits<float>::max()) continue;
    throw base::Error(where, fmt::format("node {}: expected weights of edges that add up to a "
                                         "number of 32 bits, got {}; scale them down",
                                         i, io::number_text(sum)));
  }
}

graph::Graph take_edges(const std::string& where, graph::CompactEdgeList edges,
                        graph::Direction direction) {
  try {
    return graph::Graph::take_edges(std::move(edges), direction);
  } catch (const base::Error& error) {
    // In the words of a file's owner, not of the function's caller.
    if (error.text().hint.empty()) throw error.at(where);
    throw error.at(where).with_hint("expected one weight, or data.directed=forward");
  }
}

}  // namespace

std::string shown(const std::filesystem::path& path) { return base::printable(path.string(), 400); }

std::string listed(const std::string& what, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text = what + (names.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? " '" : ", '") + base::printable(names[i]) + "'";
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

graph::Graph make_graph(const std::string& where, graph::CompactEdgeList edges,
                        graph::Direction direction) {
  graph::Graph graph = take_edges(where, std::move(edges), direction);
  if (graph.is_weighted()) check_row_sums(where, graph);
  return graph;
}

void count_graph(const io::Npz& npz, std::string_view array, std::int64_t num_nodes,
                 std::int64_t num_edges) {
  // Rows there and back while they are sorted, and what is kept for each node: labels, parts.
  constexpr std::uint64_t kBytesPerNode = 64;
  constexpr std::uint64_t kBytesPerEdge = 72;
  npz.count_memory(array, kBytesPerNode * static_cast<std::uint64_t>(num_nodes) +
                              kBytesPerEdge * static_cast<std::uint64_t>(num_edges));
}

void check_node(const std::string& place, std::int64_t node, std::int64_t num_nodes) {
  if (node >= 0 && node < num_nodes) return;
  throw base::Error(place, fmt::format("expected a node in [0, {}), got {}", num_nodes, node));
}

graph::CompactEdgeList read_edges(const io::Npz& npz, std::int64_t num_nodes) {
  const bool pairs = npz.has("edges");
  if (!pairs && !npz.has("edge_index")) {
    throw base::Error(shown(npz.path()) +
                      ": expected an array 'edges' or 'edge_index', got neither");
  }
  const std::string name = pairs ? "edges" : "edge_index";
  const std::vector<std::int64_t> shape =
      pairs ? std::vector<std::int64_t>{-1, 2} : std::vector<std::int64_t>{2, -1};
  graph::CompactEdgeList edges{.num_nodes = num_nodes};
  std::size_t count = 0;
  const auto begin = [&](std::span<const std::int64_t> found) {
    const std::int64_t num_edges = found[pairs ? 0 : 1];
    count_graph(npz, name, num_nodes, num_edges);
    count = static_cast<std::size_t>(num_edges);
    edges.src.resize(count);
    edges.dst.resize(count);
  };
  npz.scan_integers(name, shape, begin, [&](std::size_t first, std::span<const std::int64_t> ends) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::size_t position = first + i;
      const std::size_t end = pairs ? position % 2 : position >= count;
      const std::size_t edge = pairs ? position / 2 : position - end * count;
      if (ends[i] < 0 || ends[i] >= num_nodes) {
        const std::size_t row = pairs ? edge : end;
        const std::size_t column = pairs ? end : edge;
        check_node(fmt::format("{}: array '{}': [{}, {}]", shown(npz.path()), name, row, column),
                   ends[i], num_nodes);
      }
      (end == 0 ? edges.src : edges.dst)[edge] = static_cast<std::int32_t>(ends[i]);
    }
  });
  // Doubles stay what they are, so that a saved graph comes back the same; Graph::take_edges
  // refuses what is not finite.
  for (const char* weights : {"weights", "edge_weight"}) {
    if (!npz.has(weights)) continue;
    edges.weight =
        npz.doubles(weights, std::vector<std::int64_t>{static_cast<std::int64_t>(count)});
    break;
  }
  return edges;
}

graph::CompactEdgeList symmetrise(graph::CompactEdgeList edges, Merge merge) {
  if (edges.weight.empty()) return edges;
  const std::vector<Pair> pairs = collect_pairs(edges);
  const bool listed_once = std::none_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return pair.low != pair.high && pair.up != 0.0 && pair.down != 0.0;
  });
  graph::CompactEdgeList result{.num_nodes = edges.num_nodes};
  for (const Pair& pair : pairs) {
    const double largest = std::max(pair.up, pair.down);
    const bool keep = merge == Merge::kMax || listed_once;
    result.src.push_back(pair.low);
    result.dst.push_back(pair.high);
    result.weight.push_back(keep ? largest : 0.5 * (pair.up + pair.down));
  }
  return result;
}

graph::Graph make_series_graph(const std::string& where, graph::CompactEdgeList edges, Merge merge,
                               std::optional<EdgeUse> use) {
  if (use.value_or(EdgeUse::kBoth) == EdgeUse::kBoth) {
    return make_graph(where, symmetrise(std::move(edges), merge), graph::Direction::kUndirected);
  }
  if (use == EdgeUse::kBackward) edges.src.swap(edges.dst);
  return make_graph(where, std::move(edges), graph::Direction::kDirected);
}

}  // namespace mpssm::data
