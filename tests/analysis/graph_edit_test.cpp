// SPDX-License-Identifier: MIT
// Differences that were propagated against two whole recurrences.
#include "mpssm/analysis/graph_edit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/base/random.h"
#include "mpssm/graph/generators.h"

namespace mpssm::analysis {
namespace {

using graph::Graph;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<double> random_numbers(std::int64_t count, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(2.0 * random.unit() - 1.0);
  return numbers;
}

/// X(steps) of all nodes, by the definition.
std::vector<double> whole(const graph::Gso& gso, const StateProblem& problem) {
  const std::int64_t n = gso.num_nodes();
  const std::int64_t c = problem.channels;
  std::vector<double> x(problem.input.begin(), problem.input.end());
  for (std::int64_t step = 0; step < problem.steps; ++step) {
    std::vector<double> next(x.size(), 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<double> sum(static_cast<std::size_t>(c), 0.0);
      for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
        for (std::int64_t k = 0; k < c; ++k) {
          sum[k] += gso.values<double>()[e] * x[gso.col()[e] * c + k];
        }
      }
      for (std::int64_t k = 0; k < c; ++k) {
        for (std::int64_t m = 0; m < c; ++m) {
          const double w = problem.w.empty() ? (k == m ? 1.0 : 0.0) : problem.w[k * c + m];
          next[i * c + m] += sum[k] * w;
        }
        if (problem.repeats_input) next[i * c + k] += problem.input[i * c + k];
      }
    }
    x = next;
  }
  return x;
}

void expect_equal_to_recomputation(const Graph& graph, const GraphEdit& edit, graph::GsoKind kind) {
  const auto before = graph::make_gso(graph, {.kind = kind});
  const auto after = graph::make_gso(edited(graph, edit), {.kind = kind});
  const auto touched = touched_nodes(edit);
  constexpr std::int64_t kChannels = 3;
  const auto input = random_numbers(graph.num_nodes() * kChannels, 1);
  auto w = random_numbers(kChannels * kChannels, 2);
  for (double& entry : w) entry *= 0.6;
  for (const bool repeats : {false, true}) {
    for (const std::int64_t steps : {1, 2, 5}) {
      const StateProblem problem{before, after, touched, kChannels, input, w, steps, repeats};
      const StateChange change = changed_states(problem);
      const auto old_states = whole(before, problem);
      const auto new_states = whole(after, problem);
      std::vector<double> predicted = old_states;
      for (std::size_t n = 0; n < change.nodes.size(); ++n) {
        for (std::int64_t c = 0; c < kChannels; ++c) {
          const std::size_t at = change.nodes[n] * kChannels + c;
          EXPECT_NEAR(change.before[n * kChannels + c], old_states[at],
                      1e-12 * std::max(1.0, std::abs(old_states[at])));
          predicted[at] = change.after[n * kChannels + c];
        }
      }
      // Everywhere: nodes that are not listed must not have changed.
      for (std::size_t at = 0; at < predicted.size(); ++at) {
        const double size = std::max(1.0, std::abs(new_states[at]));
        ASSERT_NEAR(predicted[at], new_states[at], 1e-12 * size) << at << " steps " << steps;
      }
    }
  }
}

TEST(GraphEdit, ChangedStatesEqualRecomputation) {
  using graph::GsoKind;
  for (const GsoKind kind : {GsoKind::kSymNormalized, GsoKind::kRandomWalk, GsoKind::kAdjacency,
                             GsoKind::kLaplacian, GsoKind::kSymNormalizedNoLoops}) {
    expect_equal_to_recomputation(graph::make_grid(5, 6),
                                  {.remove = {{0, 1}, {14, 20}}, .add = {{0, 29}, {7, 3}}}, kind);
    expect_equal_to_recomputation(graph::make_clique_chain(3, 4), {.add = {{0, 9}}, .weight = 0.5},
                                  kind);
    const Graph directed = Graph::from_edges(
        {.num_nodes = 8, .src = {0, 1, 2, 3, 4, 5, 6, 2, 7}, .dst = {1, 2, 3, 4, 5, 6, 7, 0, 3}},
        graph::Direction::kDirected);
    expect_equal_to_recomputation(directed, {.remove = {{2, 3}}, .add = {{6, 1}}}, kind);
  }
}

TEST(GraphEdit, CostGrowsWithTheBallAndNotWithTheGraph) {
  const auto products_on = [](std::int64_t length, std::int64_t steps) {
    const Graph graph = graph::make_path(length);
    const GraphEdit edit{.remove = {{10, 11}}};
    const auto before = graph::make_gso(graph);
    const auto after = graph::make_gso(edited(graph, edit));
    const auto touched = touched_nodes(edit);
    const std::vector<double> input(static_cast<std::size_t>(length), 1.0);
    const StateProblem problem{
        .before = before, .after = after, .touched = touched, .input = input, .steps = steps};
    return changed_states(problem).products;
  };
  EXPECT_EQ(products_on(100, 3), products_on(20000, 3));
  EXPECT_GT(products_on(20000, 6), products_on(20000, 3));
}

TEST(GraphEdit, EditsWhatIsSaid) {
  const Graph graph = edited(graph::make_path(4), {.remove = {{2, 1}}, .add = {{3, 0}}});
  EXPECT_EQ(graph.num_edges(), 3);
  EXPECT_TRUE(graph.is_symmetric());
  EXPECT_THAT(graph.col(), ::testing::ElementsAre(1, 3, 0, 3, 0, 2));
}

TEST(GraphEdit, RefusesWhatDoesNotFit) {
  const Graph graph = graph::make_path(4);
  EXPECT_THAT(
      [&] {
        edited(graph, {.remove = {{0, 3}}});
      },
      ThrowsMessage<base::Error>(HasSubstr("edge 0,3 to remove: there is none")));
  EXPECT_THAT(
      [&] {
        edited(graph, {.add = {{1, 0}}});
      },
      ThrowsMessage<base::Error>(HasSubstr("edge 0,1 to add: it is there already")));
  EXPECT_THAT(
      [&] {
        edited(graph, {.add = {{1, 4}}});
      },
      ThrowsMessage<base::Error>(HasSubstr("edge 1,4 to add: no such node")));
}

}  // namespace
}  // namespace mpssm::analysis
