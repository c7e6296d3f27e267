// SPDX-License-Identifier: MIT
// Small random graphs with a property to predict: PNA's mixture of families, then rewiring.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "mpssm/base/random.h"
#include "mpssm/data/builtin.h"
#include "mpssm/data/readers.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"

namespace mpssm::data {
namespace {

using base::Random;

using graph::Graph;

constexpr std::int64_t kMinNodes = 25;
constexpr std::int64_t kNumSizes = 10;

enum class Family {
  kErdosRenyi,
  kBarabasiAlbert,
  kGrid,
  kCaveman,
  kTree,
  kLadder,
  kLine,
  kStar,
  kCaterpillar,
  kLobster
};
constexpr std::array<double, 10> kFamilyShare = {0.2,  0.2,  0.05, 0.05, 0.15,
                                                 0.05, 0.05, 0.05, 0.1,  0.1};

Family draw_family(Random& random) {
  double left = random.unit();
  std::size_t family = 0;
  while (family + 1 < kFamilyShare.size() && left >= kFamilyShare[family]) {
    left -= kFamilyShare[family++];
  }
  return static_cast<Family>(family);
}

std::int64_t largest_divisor_below_root(std::int64_t n) {
  auto a = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % a != 0) --a;
  return a;
}

Graph draw_shape(Family family, std::int64_t n, Random& random) {
  const std::int64_t a = largest_divisor_below_root(n);
  switch (family) {
    case Family::kErdosRenyi: {
      const double probability = random.unit();
      return graph::make_erdos_renyi(n, probability, random.bits());
    }
    case Family::kBarabasiAlbert: {
      const std::int64_t attachments = random.below(n - 1) + 1;
      return graph::make_barabasi_albert(n, attachments, random.bits());
    }
    case Family::kGrid:
      return graph::make_grid(a, n / a);
    case Family::kCaveman:
      return graph::make_caveman(a, n / a);
    case Family::kTree:
      return graph::make_power_law_tree(n, random.bits());
    case Family::kLadder:
      return graph::make_ladder(n / 2);
    case Family::kLine:
      return graph::make_path(n);
    case Family::kStar:
      return graph::make_star(n);
    case Family::kCaterpillar: {
      const std::int64_t backbone = random.below(n - 1) + 1;
      return graph::make_caterpillar(n, backbone, random.bits());
    }
    case Family::kLobster: {
      const std::int64_t backbone = random.below(n - 1) + 1;
      const std::int64_t feet = backbone + 1 + random.below(n - backbone);
      return graph::make_lobster(n, backbone, feet, random.bits());
    }
  }
  return graph::make_path(n);
}

using Adjacency = std::vector<std::vector<bool>>;

// Nodes in random order; an odd ladder gets its last node at node 0.
Adjacency shuffled_adjacency(const Graph& shape, std::int64_t n, Random& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  Adjacency adjacency(order.size(), std::vector<bool>(order.size(), false));
  const auto join = [&](std::int64_t i, std::int64_t j) {
    adjacency[order[i]][order[j]] = true;
    adjacency[order[j]][order[i]] = true;
  };
  for (std::int64_t i = 0; i < shape.num_nodes(); ++i) {
    for (std::int64_t e = shape.row_ptr()[i]; e < shape.row_ptr()[i + 1]; ++e) {
      join(i, shape.col()[e]);
    }
  }
  if (shape.num_nodes() < n) join(0, n - 1);
  return adjacency;
}

// Every pair is toggled by the sum of two draws from [0, 0.5) against a threshold, as PNA does.
Graph rewire(const Adjacency& adjacency, Random& random) {
  const auto n = static_cast<std::int64_t>(adjacency.size());
  double edges = 0.0;
  for (const auto& row : adjacency) {
    edges += 0.5 * static_cast<double>(std::count(row.begin(), row.end(), true));
  }
  const double others = 0.5 * static_cast<double>(n * (n - 1)) - edges;
  const bool is_sparse = edges <= others;
  const double keep = is_sparse ? 0.9 : 0.9 + 0.1 * (edges - others) / edges;
  const double appear = is_sparse ? 0.1 * edges / others : 0.1;
  graph::EdgeList list{.num_nodes = n};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const double draw = 0.5 * (random.unit() + random.unit());
      if (draw >= (adjacency[i][j] ? keep : appear)) continue;
      list.src.push_back(j);
      list.dst.push_back(i);
    }
  }
  return Graph::from_edges(list);
}

bool has_isolated_node(const Graph& graph) {
  const auto row_ptr = graph.row_ptr();
  return std::adjacent_find(row_ptr.begin(), row_ptr.end()) != row_ptr.end();
}

Graph draw_graph(std::int64_t n, Random& random) {
  const Family family = draw_family(random);
  Graph graph;
  do {
    graph = rewire(shuffled_adjacency(draw_shape(family, n, random), n, random), random);
  } while (has_isolated_node(graph));
  return graph;
}

std::vector<float> laplacian(const Graph& graph, const std::vector<float>& value) {
  std::vector<float> result(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    double sum = 0.0;
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      sum += value[i] - value[graph.col()[e]];
    }
    result[i] = static_cast<float>(sum);
  }
  return result;
}

std::vector<float> labels_of(const std::string& property, const Graph& graph, std::int64_t source,
                             const std::vector<float>& value) {
  if (property == "diameter") return {static_cast<float>(graph::diameter(graph))};
  if (property == "laplacian") return laplacian(graph, value);
  std::vector<std::int32_t> hops =
      property == "sssp" ? graph::distances_from(graph, source) : graph::eccentricities(graph);
  std::replace(hops.begin(), hops.end(), graph::kUnreachable, 0);
  return {hops.begin(), hops.end()};
}

// Entries in row-major order: row = one end, columns = its neighbours.
void append_graph(const Graph& graph, GraphsData& data) {
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      data.edge_src.push_back(static_cast<std::int32_t>(i));
      data.edge_dst.push_back(graph.col()[e]);
    }
  }
  data.node_ptr.push_back(data.node_ptr.back() + graph.num_nodes());
  data.edge_ptr.push_back(std::ssize(data.edge_src));
}

}  // namespace

GraphsData make_property_data(const std::string& property, std::int64_t num_train,
                              std::uint64_t seed) {
  Random random(seed);
  GraphsData data;
  const std::int64_t num_val = num_train / 4;
  for (std::int64_t g = 0; g < num_train + 2 * num_val; ++g) {
    const Graph graph = draw_graph(kMinNodes + g % kNumSizes, random);
    append_graph(graph, data);
    const std::int64_t source = random.below(graph.num_nodes());
    std::vector<float> value;
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      value.push_back(static_cast<float>(random.unit()));
      data.features.values.insert(data.features.values.end(),
                                  {i == source ? 1.0f : 0.0f, value.back()});
    }
    const std::vector<float> labels = labels_of(property, graph, source, value);
    data.target.values.insert(data.target.values.end(), labels.begin(), labels.end());
    data.part.push_back(g < num_train             ? Part::kTrain
                        : g < num_train + num_val ? Part::kVal
                                                  : Part::kTest);
  }
  data.features.rows = data.node_ptr.back();
  data.features.columns = 2;
  data.target.rows = std::ssize(data.target.values);
  data.target.columns = 1;
  data.target_names = {property};
  data.label_scale = train_maximum(data);
  return data;
}

}  // namespace mpssm::data
