// SPDX-License-Identifier: MIT
// Graph families: each writes an edge list and lets Graph::from_edges sort it.
#include "mpssm/graph/generators.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/random.h"

namespace mpssm::graph {
namespace {

using base::Random;

constexpr std::int64_t kMaxNodes = std::numeric_limits<std::int32_t>::max();

void check_range(const char* function, const char* argument, std::int64_t value, std::int64_t low,
                 std::int64_t high) {
  if (value >= low && value <= high) return;
  throw base::Error({.where = function,
                     .expected = fmt::format("{} in [{}, {}]", argument, low, high),
                     .got = std::to_string(value)});
}

// Two counts whose product is a number of nodes.
void check_product(const char* function, const char* first_name, std::int64_t first,
                   const char* second_name, std::int64_t second) {
  check_range(function, first_name, first, 1, kMaxNodes);
  check_range(function, second_name, second, 1, kMaxNodes / first);
}

class EdgeWriter {
 public:
  explicit EdgeWriter(std::int64_t num_nodes) { edges_.num_nodes = num_nodes; }
  void add(std::int64_t a, std::int64_t b) {
    edges_.src.push_back(a);
    edges_.dst.push_back(b);
  }
  void add_path(std::int64_t first, std::int64_t size) {
    for (std::int64_t i = 1; i < size; ++i) add(first + i - 1, first + i);
  }
  void add_clique(std::int64_t first, std::int64_t size) {
    for (std::int64_t i = 1; i < size; ++i) {
      for (std::int64_t j = 0; j < i; ++j) add(first + j, first + i);
    }
  }
  Graph graph() const { return Graph::from_edges(edges_); }

 private:
  EdgeList edges_;
};

// An undirected pair as one number, for sorting and for look-up.
std::int64_t pair_key(std::int64_t a, std::int64_t b) {
  return (std::max(a, b) << 31) | std::min(a, b);
}
std::pair<std::int64_t, std::int64_t> pair_of(std::int64_t key) {
  return {key >> 31, key & ((std::int64_t{1} << 31) - 1)};
}

Graph from_keys(std::int64_t num_nodes, const std::vector<std::int64_t>& keys) {
  EdgeWriter writer(num_nodes);
  for (const std::int64_t key : keys) {
    const auto [a, b] = pair_of(key);
    writer.add(a, b);
  }
  return writer.graph();
}

// Node n >= attachments joins that many distinct earlier nodes. `ends` lists each node once per
// edge end, so that a uniform draw from it prefers high degrees.
Graph attach_preferentially(std::int64_t num_nodes, std::int64_t attachments, std::uint64_t seed) {
  Random random(seed);
  EdgeWriter writer(num_nodes);
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> targets(attachments);
  std::iota(targets.begin(), targets.end(), 0);
  std::vector<std::int64_t> chosen_by(num_nodes, -1);
  for (std::int64_t node = attachments; node < num_nodes; ++node) {
    for (const std::int64_t target : targets) {
      writer.add(target, node);
      ends.push_back(target);
      ends.push_back(node);
    }
    targets.clear();
    while (std::ssize(targets) < attachments) {
      const std::int64_t target = random.pick(ends);
      if (std::exchange(chosen_by[target], node) != node) targets.push_back(target);
    }
  }
  return writer.graph();
}

// One draw of the pairing model: loops and repeated pairs are repaired by swapping ends with good
// pairs. Fails (empty result) if a pair resists, which only tiny or dense graphs do.
std::vector<std::int64_t> try_regular_pairing(std::int64_t num_nodes, std::int64_t degree,
                                              Random& random) {
  std::vector<std::int64_t> ends(num_nodes * degree);
  for (std::int64_t i = 0; i < std::ssize(ends); ++i) ends[i] = i % num_nodes;
  random.shuffle_front(ends, std::ssize(ends));
  std::unordered_set<std::int64_t> taken;
  std::vector<std::int64_t> good;
  std::vector<std::pair<std::int64_t, std::int64_t>> bad;
  const auto is_free = [&](std::int64_t a, std::int64_t b) {
    return a != b && !taken.contains(pair_key(a, b));
  };
  const auto take = [&](std::int64_t a, std::int64_t b) {
    taken.insert(pair_key(a, b));
    return pair_key(a, b);
  };
  for (std::int64_t i = 0; i < std::ssize(ends); i += 2) {
    if (is_free(ends[i], ends[i + 1])) {
      good.push_back(take(ends[i], ends[i + 1]));
    } else {
      bad.emplace_back(ends[i], ends[i + 1]);
    }
  }
  constexpr int kTries = 1000;
  for (const auto& [a, b] : bad) {
    int tries = 0;
    for (; tries < kTries && !good.empty(); ++tries) {
      std::int64_t& swapped = good[random.below(std::ssize(good))];
      auto [c, d] = pair_of(swapped);
      if (random.below(2) == 1) std::swap(c, d);
      if (!is_free(a, c) || !is_free(b, d)) continue;
      taken.erase(swapped);
      swapped = take(a, c);
      good.push_back(take(b, d));
      break;
    }
    if (tries == kTries || good.empty()) return {};
  }
  return good;
}

// Adds uniform random pairs to `keys` until there are `count`. Redrawing only what is
// missing keeps the choice uniform and costs a few sorts.
void fill_with_random_pairs(std::vector<std::int64_t>& keys, std::int64_t num_nodes,
                            std::int64_t count, Random& random) {
  std::sort(keys.begin(), keys.end());
  while (std::ssize(keys) < count) {
    const auto sorted_end = std::ssize(keys);
    for (std::int64_t missing = count - sorted_end; missing > 0; --missing) {
      const std::int64_t a = random.below(num_nodes);
      const std::int64_t b = random.below(num_nodes - 1);
      keys.push_back(pair_key(a, b < a ? b : b + 1));
    }
    std::sort(keys.begin() + sorted_end, keys.end());
    std::inplace_merge(keys.begin(), keys.begin() + sorted_end, keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
}

std::vector<std::int64_t> all_other_pairs(std::vector<std::int64_t> keys, std::int64_t num_nodes) {
  std::sort(keys.begin(), keys.end());
  std::vector<std::int64_t> others;
  for (std::int64_t i = 1; i < num_nodes; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const std::int64_t key = pair_key(i, j);
      if (!std::binary_search(keys.begin(), keys.end(), key)) others.push_back(key);
    }
  }
  return others;
}

enum class Neighbours { kFour, kEight };

Graph make_lattice(std::int64_t rows, std::int64_t columns, Neighbours neighbours) {
  const bool diagonals = neighbours == Neighbours::kEight;
  EdgeWriter writer(rows * columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t node = r * columns + c;
      if (c + 1 < columns) writer.add(node, node + 1);
      if (r + 1 == rows) continue;
      writer.add(node, node + columns);
      if (diagonals && c > 0) writer.add(node, node + columns - 1);
      if (diagonals && c + 1 < columns) writer.add(node, node + columns + 1);
    }
  }
  return writer.graph();
}

}  // namespace

Graph make_path(std::int64_t num_nodes) {
  check_range("make_path", "num_nodes", num_nodes, 1, kMaxNodes);
  EdgeWriter writer(num_nodes);
  writer.add_path(0, num_nodes);
  return writer.graph();
}

Graph make_ring(std::int64_t num_nodes) {
  check_range("make_ring", "num_nodes", num_nodes, 3, kMaxNodes);
  EdgeWriter writer(num_nodes);
  writer.add_path(0, num_nodes);
  writer.add(num_nodes - 1, 0);
  return writer.graph();
}

Graph make_grid(std::int64_t rows, std::int64_t columns) {
  check_product("make_grid", "rows", rows, "columns", columns);
  return make_lattice(rows, columns, Neighbours::kFour);
}

Graph make_star(std::int64_t num_nodes) {
  check_range("make_star", "num_nodes", num_nodes, 1, kMaxNodes);
  EdgeWriter writer(num_nodes);
  for (std::int64_t i = 1; i < num_nodes; ++i) writer.add(0, i);
  return writer.graph();
}

Graph make_complete(std::int64_t num_nodes) {
  check_range("make_complete", "num_nodes", num_nodes, 1, kMaxNodes);
  EdgeWriter writer(num_nodes);
  writer.add_clique(0, num_nodes);
  return writer.graph();
}

Graph make_power_law_tree(std::int64_t num_nodes, std::uint64_t seed) {
  check_range("make_power_law_tree", "num_nodes", num_nodes, 1, kMaxNodes);
  return attach_preferentially(num_nodes, 1, seed);
}

Graph make_ladder(std::int64_t rungs) {
  check_range("make_ladder", "rungs", rungs, 1, kMaxNodes / 2);
  EdgeWriter writer(2 * rungs);
  writer.add_path(0, rungs);
  writer.add_path(rungs, rungs);
  for (std::int64_t i = 0; i < rungs; ++i) writer.add(i, rungs + i);
  return writer.graph();
}

Graph make_caveman(std::int64_t cliques, std::int64_t clique_size) {
  check_product("make_caveman", "cliques", cliques, "clique_size", clique_size);
  EdgeWriter writer(cliques * clique_size);
  for (std::int64_t c = 0; c < cliques; ++c) writer.add_clique(c * clique_size, clique_size);
  return writer.graph();
}

Graph make_caterpillar(std::int64_t num_nodes, std::int64_t backbone, std::uint64_t seed) {
  check_range("make_caterpillar", "num_nodes", num_nodes, 1, kMaxNodes);
  check_range("make_caterpillar", "backbone", backbone, 1, num_nodes);
  Random random(seed);
  EdgeWriter writer(num_nodes);
  writer.add_path(0, backbone);
  for (std::int64_t i = backbone; i < num_nodes; ++i) writer.add(random.below(backbone), i);
  return writer.graph();
}

Graph make_lobster(std::int64_t num_nodes, std::int64_t backbone, std::int64_t feet_start,
                   std::uint64_t seed) {
  check_range("make_lobster", "num_nodes", num_nodes, 2, kMaxNodes);
  check_range("make_lobster", "backbone", backbone, 1, num_nodes - 1);
  check_range("make_lobster", "feet_start", feet_start, backbone + 1, num_nodes);
  Random random(seed);
  EdgeWriter writer(num_nodes);
  writer.add_path(0, backbone);
  for (std::int64_t i = backbone; i < feet_start; ++i) writer.add(random.below(backbone), i);
  for (std::int64_t i = feet_start; i < num_nodes; ++i) {
    writer.add(backbone + random.below(feet_start - backbone), i);
  }
  return writer.graph();
}

Graph make_erdos_renyi(std::int64_t num_nodes, double probability, std::uint64_t seed) {
  check_range("make_erdos_renyi", "num_nodes", num_nodes, 1, kMaxNodes);
  if (!(probability >= 0.0 && probability <= 1.0)) {
    throw base::Error({.where = "make_erdos_renyi",
                       .expected = "probability in [0, 1]",
                       .got = std::to_string(probability)});
  }
  if (probability == 1.0) return make_complete(num_nodes);
  Random random(seed);
  EdgeWriter writer(num_nodes);
  // Pairs (row, column < row) in a line; the gaps between edges are geometric.
  const double log_miss = std::log1p(-probability);
  const double num_pairs = 0.5 * static_cast<double>(num_nodes) * static_cast<double>(num_nodes);
  std::int64_t row = 1;
  std::int64_t column = -1;
  while (probability > 0.0) {
    const double gap = std::floor(std::log1p(-random.unit()) / log_miss);
    if (gap >= num_pairs) break;
    column += 1 + static_cast<std::int64_t>(gap);
    while (row < num_nodes && column >= row) column -= row++;
    if (row >= num_nodes) break;
    writer.add(column, row);
  }
  return writer.graph();
}

Graph make_barabasi_albert(std::int64_t num_nodes, std::int64_t attachments, std::uint64_t seed) {
  check_range("make_barabasi_albert", "num_nodes", num_nodes, 2, kMaxNodes);
  check_range("make_barabasi_albert", "attachments", attachments, 1, num_nodes - 1);
  return attach_preferentially(num_nodes, attachments, seed);
}

Graph make_random_regular(std::int64_t num_nodes, std::int64_t degree, std::uint64_t seed) {
  check_range("make_random_regular", "num_nodes", num_nodes, 1, kMaxNodes);
  check_range("make_random_regular", "degree", degree, 0, num_nodes - 1);
  if (num_nodes % 2 == 1 && degree % 2 == 1) {
    throw base::Error({.where = "make_random_regular",
                       .expected = "num_nodes * degree even",
                       .got = fmt::format("{} * {}", num_nodes, degree)});
  }
  // Dense graphs leave no room for repairs: draw what they lack instead.
  const bool draw_complement = 2 * degree > num_nodes - 1;
  const std::int64_t drawn_degree = draw_complement ? num_nodes - 1 - degree : degree;
  Random random(seed);
  std::vector<std::int64_t> keys;
  while (drawn_degree > 0 && keys.empty()) {
    keys = try_regular_pairing(num_nodes, drawn_degree, random);
  }
  if (draw_complement) keys = all_other_pairs(std::move(keys), num_nodes);
  return from_keys(num_nodes, keys);
}

Graph make_random_connected(std::int64_t num_nodes, std::int64_t num_edges, std::uint64_t seed) {
  check_range("make_random_connected", "num_nodes", num_nodes, 1, kMaxNodes);
  const std::int64_t num_pairs = num_nodes * (num_nodes - 1) / 2;
  check_range("make_random_connected", "num_edges", num_edges, num_nodes - 1, num_pairs);
  Random random(seed);
  std::vector<std::int64_t> order(num_nodes);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle_front(order, num_nodes);
  std::vector<std::int64_t> keys;
  keys.reserve(num_edges);
  for (std::int64_t i = 1; i < num_nodes; ++i) {
    keys.push_back(pair_key(order[i], order[random.below(i)]));
  }
  if (num_edges > num_pairs / 4) {
    // Few pairs are free: list them, for a blind draw would rarely meet one.
    std::vector<std::int64_t> others = all_other_pairs(keys, num_nodes);
    const std::int64_t missing = num_edges - std::ssize(keys);
    random.shuffle_front(others, missing);
    keys.insert(keys.end(), others.begin(), others.begin() + missing);
  } else {
    fill_with_random_pairs(keys, num_nodes, num_edges, random);
  }
  return from_keys(num_nodes, keys);
}

Graph make_clique_chain(std::int64_t cliques, std::int64_t clique_size) {
  check_range("make_clique_chain", "cliques", cliques, 1, kMaxNodes / 3);
  check_range("make_clique_chain", "clique_size", clique_size, 2, kMaxNodes / cliques - 1);
  const std::int64_t first_bridge = cliques * clique_size;
  EdgeWriter writer(first_bridge + cliques - 1);
  for (std::int64_t c = 0; c < cliques; ++c) writer.add_clique(c * clique_size, clique_size);
  for (std::int64_t c = 0; c + 1 < cliques; ++c) {
    // From the last node of clique c to the first of the next.
    writer.add((c + 1) * clique_size - 1, first_bridge + c);
    writer.add(first_bridge + c, (c + 1) * clique_size);
  }
  return writer.graph();
}

Graph make_board(std::int64_t rows, std::int64_t columns) {
  check_product("make_board", "rows", rows, "columns", columns);
  return make_lattice(rows, columns, Neighbours::kEight);
}

}  // namespace mpssm::graph
