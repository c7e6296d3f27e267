// SPDX-License-Identifier: MIT
#include "mpssm/graph/order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"

namespace mpssm::graph {
namespace {

/// The graph with its nodes named anew, at random.
Graph shuffled(const EdgeList& edges, Direction direction = Direction::kUndirected) {
  std::vector<std::int64_t> name(static_cast<std::size_t>(edges.num_nodes));
  std::iota(name.begin(), name.end(), 0);
  std::shuffle(name.begin(), name.end(), std::mt19937(1));
  EdgeList renamed = edges;
  for (auto& node : renamed.src) node = name[node];
  for (auto& node : renamed.dst) node = name[node];
  return Graph::from_edges(renamed, direction);
}

EdgeList grid_edges(std::int64_t side) {
  EdgeList edges;
  edges.num_nodes = side * side;
  for (std::int64_t i = 0; i < side; ++i) {
    for (std::int64_t j = 0; j < side; ++j) {
      for (const auto& [down, right] : {std::pair{1, 0}, std::pair{0, 1}}) {
        if (i + down == side || j + right == side) continue;
        edges.src.push_back(i * side + j);
        edges.dst.push_back((i + down) * side + j + right);
      }
    }
  }
  return edges;
}

/// Two parts, a node by itself, and one-way edges.
Gso directed_parts() {
  EdgeList edges;
  edges.num_nodes = 12;
  edges.src = {0, 1, 2, 3, 6, 7, 8, 10, 0};
  edges.dst = {1, 2, 3, 4, 7, 8, 9, 6, 4};
  return make_gso(shuffled(edges, Direction::kDirected), {.kind = GsoKind::kAdjacency});
}

TEST(NodeOrder, HoldsEveryNodeOnce) {
  for (const Gso& gso : {Gso(), directed_parts(), make_gso(shuffled(grid_edges(20)))}) {
    const NodeOrder& order = node_order(gso);
    ASSERT_EQ(std::ssize(order.node), gso.num_nodes());
    ASSERT_EQ(std::ssize(order.place), gso.num_nodes());
    std::vector<int> seen(order.node.size(), 0);
    for (std::size_t i = 0; i < order.node.size(); ++i) {
      ++seen[order.node[i]];
      EXPECT_EQ(order.place[order.node[i]], static_cast<std::int64_t>(i));
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), gso.num_nodes());
  }
}

TEST(NodeOrder, BringsTheNeighboursOfAShuffledGridNear) {
  // A search from a corner has levels of up to 20 nodes, and neighbours are in the next one.
  const Gso gso = make_gso(shuffled(grid_edges(20)));
  const NodeOrder& order = node_order(gso);
  std::int64_t farthest = 0;
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      farthest =
          std::max<std::int64_t>(farthest, std::abs(order.place[i] - order.place[gso.col()[e]]));
    }
  }
  EXPECT_LE(farthest, 2 * 20);
}

template <typename T>
void expect_same_rows(const NodeOrder& order, const kernels::CsrView<T>& given,
                      const kernels::CsrView<T>& ordered) {
  ASSERT_EQ(ordered.num_rows, given.num_rows);
  for (std::int64_t i = 0; i < given.num_rows; ++i) {
    const std::int64_t node = order.node[i];
    const std::int64_t size = given.row_ptr[node + 1] - given.row_ptr[node];
    ASSERT_EQ(ordered.row_ptr[i + 1] - ordered.row_ptr[i], size);
    for (std::int64_t e = 0; e < size; ++e) {  // in the order they had
      EXPECT_EQ(order.node[ordered.col[ordered.row_ptr[i] + e]],
                given.col[given.row_ptr[node] + e]);
      EXPECT_EQ(ordered.value[ordered.row_ptr[i] + e], given.value[given.row_ptr[node] + e]);
    }
  }
}

TEST(OrderedGso, HasTheRowsOfTheOperatorAndOfItsTranspose) {
  const Graph grid = shuffled(grid_edges(6));
  for (const Gso& gso :
       {directed_parts(), make_gso(grid), make_gso(grid, {.kind = GsoKind::kRandomWalk})}) {
    const NodeOrder& order = node_order(gso);
    expect_same_rows(order, gso.view<float>(), ordered_gso<float>(gso).view());
    expect_same_rows(order, gso.view<double>(), ordered_gso<double>(gso).view());
    expect_same_rows(order, gso.transpose_view<float>(), ordered_gso<float>(gso).transpose_view());
  }
}

TEST(OrderedGso, TakesTheBytesItSays) {
  const Graph grid = shuffled(grid_edges(6));
  for (const Gso& gso :
       {directed_parts(), make_gso(grid), make_gso(grid, {.kind = GsoKind::kRandomWalk})}) {
    const OrderedGso<float>& ordered = ordered_gso<float>(gso);
    std::int64_t bytes = 2 * 4 * gso.num_nodes();
    for (const OrderedRows<float>* rows : {&ordered.rows, &ordered.transposed}) {
      bytes += 8 * std::max<std::int64_t>(0, std::ssize(rows->row_ptr) - 1) +
               4 * std::ssize(rows->col) + 4 * std::ssize(rows->value);
    }
    EXPECT_EQ(ordered_bytes(gso, 4), bytes);
  }
}

TEST(EntriesBroughtNear, AreThoseOfLargeGraphsWithHiddenLocality) {
  const EdgeList grid = grid_edges(300);
  EXPECT_GT(entries_brought_near(make_gso(shuffled(grid))), 2.0);
  EXPECT_EQ(entries_brought_near(make_gso(Graph::from_edges(grid, Direction::kUndirected))), 0.0);
  EXPECT_LT(entries_brought_near(make_gso(make_random_connected(90'000, 180'000, 1))), 1.0);
  EXPECT_EQ(entries_brought_near(make_gso(shuffled(grid_edges(100)))), 0.0);  // fits the cache
}

TEST(OrderedGso, OfABorrowedOperatorIsTheOneItWasGiven) {
  const Gso owner = make_gso(shuffled(grid_edges(6)));
  const NodeOrder& order = node_order(owner);
  const OrderedRows<float>& rows = ordered_gso<float>(owner).rows;
  const Gso borrowed = Gso::borrow(owner.arrays());
  EXPECT_EQ(entries_brought_near(borrowed), 0.0);
  give_order<float>(borrowed, 2.5, {std::span(order.node), std::span(order.place)},
                    {{std::span(rows.row_ptr), std::span(rows.col), std::span(rows.value)}, {}});
  EXPECT_EQ(entries_brought_near(borrowed), 2.5);
  EXPECT_EQ(node_order(borrowed).place.data(), order.place.data());
  EXPECT_EQ(ordered_gso<float>(borrowed).transpose_view().col, rows.col.data());
}

TEST(OrderedGso, IsMadeOnceForAllThreads) {
  const Gso gso = make_gso(shuffled(grid_edges(60)));
  std::vector<const void*> made(4);
  std::vector<std::thread> threads;
  for (const void*& one : made) {
    threads.emplace_back([&gso, &one] { one = ordered_gso<float>(gso).view().col; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::count(made.begin(), made.end(), made[0]), 4);
}

}  // namespace
}  // namespace mpssm::graph
