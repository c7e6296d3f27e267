// SPDX-License-Identifier: MIT
// Advised edges against every candidate, recomputed the plain way: another graph, another operator.
#include "mpssm/analysis/rewire.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/graph_edit.h"
#include "mpssm/analysis/removal.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/engine/thread_pool.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"

namespace mpssm::analysis {
namespace {

using graph::Graph;

const engine::SerialExecutor kSerial;

double value_of_pair(const Graph& graph, std::int64_t source, std::int64_t target,
                     std::int64_t tau) {
  const std::int64_t taus[] = {tau};
  return pair_profile(graph::make_gso(graph), source, target, taus, kSerial)[0];
}

Graph with_edge(const Graph& graph, std::int32_t u, std::int32_t v, double weight = 1.0) {
  return edited(graph, {.add = {{u, v}}, .weight = weight});
}

/// (S^tau)_ij with each edge that the graph does not have, largest first.
std::vector<double> all_values(const Graph& graph, std::int64_t source, std::int64_t target,
                               std::int64_t tau) {
  std::vector<double> values;
  for (std::int32_t u = 0; u < graph.num_nodes(); ++u) {
    const auto row =
        graph.col().subspan(graph.row_ptr()[u], graph.row_ptr()[u + 1] - graph.row_ptr()[u]);
    for (std::int32_t v = u + 1; v < graph.num_nodes(); ++v) {
      if (std::find(row.begin(), row.end(), v) != row.end()) continue;
      values.push_back(value_of_pair(with_edge(graph, u, v), source, target, tau));
    }
  }
  std::sort(values.rbegin(), values.rend());
  return values;
}

Graph weighted_graph() {
  return Graph::from_edges({.num_nodes = 7,
                            .src = {0, 1, 2, 3, 4, 5, 2},
                            .dst = {1, 2, 3, 4, 5, 6, 2},
                            .weight = {2.0, 0.5, 1.0, 3.0, 0.25, 1.5, 0.75}});
}

TEST(Rewire, SlopeIsTheDerivativeOfThePower) {
  for (const Graph& graph : {graph::make_clique_chain(3, 4), graph::make_grid(3, 5),
                             graph::make_random_connected(15, 22, 4), weighted_graph()}) {
    const auto gso = graph::make_gso(graph);
    const auto degree = degrees_with_loops(graph);
    for (const std::int64_t tau : {1, 2, 9}) {
      const PairDerivative derivative(gso, degree, 0, 5, tau, kSerial);
      EXPECT_NEAR(derivative.value(), value_of_pair(graph, 0, 5, tau), 1e-15);
      for (std::int32_t u = 0; u < graph.num_nodes(); u += 2) {
        for (std::int32_t v = u + 1; v < graph.num_nodes(); v += 3) {
          const auto row =
              graph.col().subspan(graph.row_ptr()[u], graph.row_ptr()[u + 1] - graph.row_ptr()[u]);
          if (std::find(row.begin(), row.end(), v) != row.end()) continue;
          // A central difference: the formula holds for a slightly negative weight as well, but a
          // graph may not have it, so one step forward and Richardson's half step.
          constexpr double kStep = 1e-5;
          const auto forward = [&](double step) {
            return (value_of_pair(with_edge(graph, u, v, step), 0, 5, tau) - derivative.value()) /
                   step;
          };
          const double numeric = 2.0 * forward(kStep / 2) - forward(kStep);
          EXPECT_NEAR(derivative.slope(u, v), numeric, 1e-8) << u << " " << v << " tau " << tau;
          EXPECT_GE(derivative.bound(u, v) + 1e-15, derivative.slope(u, v));
        }
      }
    }
  }
}

TEST(Rewire, ValueWithAnEdgeIsThatOfTheOtherGraph) {
  for (const Graph& graph : {graph::make_clique_chain(3, 4), weighted_graph()}) {
    const auto gso = graph::make_gso(graph);
    const auto degree = degrees_with_loops(graph);
    for (const double weight : {1.0, 0.3}) {
      const double there = value_with_edge(gso, degree, 0, 4, 6, {0, 5, 0.0}, weight, kSerial);
      EXPECT_NEAR(there, value_of_pair(with_edge(graph, 0, 5, weight), 0, 4, 6), 1e-14);
    }
  }
}

TEST(Rewire, PruningLosesNoCandidate) {
  const Graph graph = graph::make_random_connected(60, 100, 8);
  const PairDerivative derivative(graph::make_gso(graph), degrees_with_loops(graph), 3, 41, 12,
                                  kSerial);
  std::vector<double> slopes;
  for (std::int32_t u = 0; u < 60; ++u) {
    const auto row =
        graph.col().subspan(graph.row_ptr()[u], graph.row_ptr()[u + 1] - graph.row_ptr()[u]);
    for (std::int32_t v = u + 1; v < 60; ++v) {
      if (std::find(row.begin(), row.end(), v) == row.end()) {
        slopes.push_back(derivative.slope(u, v));
      }
    }
  }
  std::sort(slopes.rbegin(), slopes.rend());
  std::int64_t looked_at = 0;
  const auto best = derivative.best(graph, 20, &looked_at);
  ASSERT_EQ(best.size(), 20u);
  for (std::size_t k = 0; k < best.size(); ++k) EXPECT_EQ(best[k].slope, slopes[k]) << k;
  EXPECT_LT(looked_at, std::ssize(slopes) / 2);
}

TEST(Rewire, AdvisedEdgeOfTheCliqueChainIsTheBestOfAll) {
  const Graph graph = graph::make_clique_chain(6, 10);
  for (const Order order : {Order::kValue, Order::kShare}) {
    for (const std::int64_t tau : {20, 50}) {
      const RewireAnswer found = answer({.graph = graph, .tau = tau, .order = order}, kSerial);
      const std::vector<double> all = all_values(graph, found.source, found.target, tau);
      EXPECT_EQ(found.candidates, std::ssize(all));
      ASSERT_EQ(found.edges.size(), 5u);
      EXPECT_NEAR(found.edges[0].value, all[0], 1e-14 * all[0]) << "tau " << tau;
      EXPECT_GT(found.edges[0].value, found.value);
      EXPECT_TRUE(std::is_sorted(found.edges.begin(), found.edges.end(),
                                 [](auto& a, auto& b) { return a.value > b.value; }));
    }
  }
}

TEST(Rewire, AdvisedEdgeIsAmongTheBestPercentOfTenRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Graph graph = seed % 2 == 0 ? graph::make_random_connected(40, 60, seed)
                                      : graph::make_barabasi_albert(40, 2, seed);
    const std::int64_t tau = 4 + 3 * static_cast<std::int64_t>(seed);
    const RewireAnswer found = answer({.graph = graph, .tau = tau, .count = 1}, kSerial);
    const std::vector<double> all = all_values(graph, found.source, found.target, tau);
    const double threshold = all[all.size() / 100];
    EXPECT_GE(found.edges[0].value * (1 + 1e-12), threshold) << "seed " << seed;
  }
}

TEST(Rewire, AnswersForAGivenPairAndSaysWhyNot) {
  const Graph graph = graph::make_path(12);
  const RewireAnswer found =
      answer({.graph = graph, .tau = 8, .source = 2, .target = 9, .count = 3}, kSerial);
  EXPECT_EQ(found.source, 2);
  EXPECT_EQ(found.target, 9);
  EXPECT_NEAR(found.edges[0].value, all_values(graph, 2, 9, 8)[0], 1e-15);
  const Graph directed = Graph::from_edges({.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}},
                                           graph::Direction::kDirected);
  EXPECT_THAT([&] { answer({.graph = directed, .tau = 2}, kSerial); },
              ::testing::ThrowsMessage<std::invalid_argument>(::testing::HasSubstr("rewire: ")));
}

TEST(Rewire, SlopeOfAnEdgeThatIsThereIsTheDerivativeInItsWeight) {
  for (const Graph& graph : {graph::make_clique_chain(2, 4), weighted_graph()}) {
    const PairDerivative derivative(graph::make_gso(graph), degrees_with_loops(graph), 0, 5, 7,
                                    kSerial);
    for (std::int32_t u = 0; u < graph.num_nodes(); ++u) {
      for (std::int64_t e = graph.row_ptr()[u]; e < graph.row_ptr()[u + 1]; ++e) {
        const std::int32_t v = graph.col()[e];
        if (v <= u) continue;
        constexpr double kStep = 1e-5;
        const auto at = [&](double weight) {
          return value_of_pair(with_edge(edited(graph, {.remove = {{u, v}}}), u, v, weight), 0, 5,
                               7);
        };
        const double weight = graph.weight()[e];
        const double numeric = (at(weight + kStep) - at(weight - kStep)) / (2 * kStep);
        EXPECT_NEAR(derivative.slope(u, v), numeric, 1e-9) << u << " " << v;
      }
    }
  }
}

TEST(Removal, ListsTheEdgesThatHurtLeastOfAllRecomputed) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Graph graph =
        seed == 0 ? graph::make_clique_chain(3, 5) : graph::make_random_connected(30, 50, seed);
    const RewireQuestion question{.graph = graph, .tau = 9, .count = 3};
    const RemovalAnswer found = answer_removal(question, kSerial);
    std::vector<double> all;
    std::int64_t bridges = 0;
    for (std::int32_t u = 0; u < graph.num_nodes(); ++u) {
      for (std::int64_t e = graph.row_ptr()[u]; e < graph.row_ptr()[u + 1]; ++e) {
        const std::int32_t v = graph.col()[e];
        if (v <= u) continue;
        const Graph without = edited(graph, {.remove = {{u, v}}});
        if (graph::components(without).count > 1) {
          ++bridges;
        } else {
          all.push_back(value_of_pair(without, found.source, found.target, 9));
        }
      }
    }
    std::sort(all.rbegin(), all.rend());
    EXPECT_EQ(found.bridges, bridges);
    EXPECT_EQ(found.candidates, std::ssize(all));
    ASSERT_EQ(found.edges.size(), 3u);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(found.edges[k].value, all[k], 1e-12 * all[k]) << "seed " << seed << " " << k;
    }
  }
}

TEST(Rewire, RoundsHelpThePairThatIsWorstByThen) {
  const Graph start = graph::make_clique_chain(4, 5);
  const auto rounds = rewire_in_rounds({.graph = start, .tau = 12}, 4, kSerial);
  ASSERT_EQ(rounds.size(), 4u);
  Graph graph = start;
  for (const RewireRound& round : rounds) {
    const RewireAnswer found = answer({.graph = graph, .tau = 12, .count = 1}, kSerial);
    EXPECT_EQ(found.source, round.source);
    EXPECT_EQ(found.edges[0].u, round.u);
    EXPECT_NEAR(value_of_pair(graph, round.source, round.target, 12), round.before, 1e-15);
    graph = with_edge(graph, round.u, round.v);
    EXPECT_NEAR(value_of_pair(graph, round.source, round.target, 12), round.after, 1e-14);
  }
  // A complete graph has no edge to add.
  EXPECT_TRUE(rewire_in_rounds({.graph = graph::make_complete(4), .tau = 3}, 2, kSerial).empty());
}

TEST(Rewire, GivesTheSameForAnyNumberOfWorkers) {
  const Graph graph = graph::make_random_connected(300, 500, 5);
  const RewireAnswer one = answer({.graph = graph, .tau = 9}, kSerial);
  const engine::ThreadPool pool(3);
  const RewireAnswer three = answer({.graph = graph, .tau = 9}, pool);
  ASSERT_EQ(one.edges.size(), three.edges.size());
  for (std::size_t e = 0; e < one.edges.size(); ++e) {
    EXPECT_EQ(one.edges[e].value, three.edges[e].value);
    EXPECT_EQ(one.edges[e].u, three.edges[e].u);
  }
}

}  // namespace
}  // namespace mpssm::analysis
