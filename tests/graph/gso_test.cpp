// SPDX-License-Identifier: MIT
// Gso: each operator against its formula, the transpose, and the checks.
#include "mpssm/graph/gso.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso_gradient.h"

#include "tests/graph/dense.h"

namespace mpssm::graph {
namespace {

using testing::Dense;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StrEq;
using ::testing::ThrowsMessage;
using testing::to_dense;

// A few roundings of numbers of size one.
constexpr double kTolerance = 1e-15;

const std::vector<GsoKind> kGraphKinds = {GsoKind::kSymNormalized, GsoKind::kSymNormalizedNoLoops,
                                          GsoKind::kRandomWalk,    GsoKind::kAdjacency,
                                          GsoKind::kLaplacian,     GsoKind::kIdentity};

Graph directed_graph(std::uint64_t seed) {
  return Graph::from_edges(testing::random_edges(12, 40, seed), Direction::kDirected);
}

// Symmetric, with uneven weights, self-loops and negative entries.
Graph weighted_graph(std::uint64_t seed) {
  EdgeList edges{.num_nodes = 9, .src = {}, .dst = {}, .weight = {}};
  const std::vector<double> draws = testing::random_vector(81, seed);
  for (std::int64_t i = 0; i < 9; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      if (draws[9 * i + j] < 0.2) continue;
      edges.src.push_back(i);
      edges.dst.push_back(j);
      edges.weight.push_back(draws[9 * j + i] + 0.6);
    }
  }
  return Graph::from_edges(edges);
}

Dense view_of(const Gso& gso) { return to_dense(gso.view<double>()); }

void expect_near(const Dense& actual, const Dense& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    for (std::size_t j = 0; j < actual.size(); ++j) {
      EXPECT_NEAR(actual[i][j], expected[i][j], kTolerance) << i << ", " << j;
    }
  }
}

std::vector<double> absolute_row_sums(const Dense& matrix) {
  std::vector<double> sums(matrix.size(), 0.0);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (const double entry : matrix[i]) sums[i] += std::abs(entry);
  }
  return sums;
}

Dense normalized(const Dense& matrix) {
  const std::vector<double> degree = absolute_row_sums(matrix);
  Dense result = matrix;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j < matrix.size(); ++j) {
      const double scale = std::sqrt(degree[i] * degree[j]);
      result[i][j] = scale > 0.0 ? matrix[i][j] / scale : 0.0;
    }
  }
  return result;
}

// weight 1 on the diagonal where the graph stores nothing
Dense with_missing_loops(const Graph& graph) {
  Dense matrix = to_dense(graph);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (matrix[i][i] == 0.0) matrix[i][i] = 1.0;
  }
  return matrix;
}

TEST(Gso, OnNoNodesIsEmpty) {
  for (const Gso& gso : {Gso(), make_gso(Graph())}) {
    EXPECT_EQ(gso.num_nodes(), 0);
    EXPECT_EQ(gso.num_nonzeros(), 0);
    EXPECT_TRUE(gso.is_symmetric());
    EXPECT_EQ(gso.view<float>().num_rows, 0);
    EXPECT_THAT(gso.graph_ptr(), ElementsAre(0, 0));
  }
}

TEST(Gso, OfOneNodeKeepsItsState) {
  const Gso gso = make_gso(Graph::from_edges({.num_nodes = 1}));
  EXPECT_EQ(view_of(gso), (Dense{{1.0}}));
}

TEST(Gso, DefaultIsTheSymmetricNormalization) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    expect_near(view_of(make_gso(weighted_graph(seed))),
                normalized(with_missing_loops(weighted_graph(seed))));
    expect_near(view_of(make_gso(directed_graph(seed))),
                normalized(with_missing_loops(directed_graph(seed))));
  }
}

TEST(Gso, WithoutLoopsNormalizesTheGraphAsItIs) {
  const Gso gso = make_gso(make_star(5), {.kind = GsoKind::kSymNormalizedNoLoops});
  EXPECT_EQ(gso.num_nonzeros(), 8);
  for (const double value : gso.values<double>()) EXPECT_NEAR(value, 0.5, kTolerance);
}

TEST(Gso, RowsOfRandomWalkSumToOne) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Gso gso = make_gso(directed_graph(seed), {.kind = GsoKind::kRandomWalk});
    for (const double sum : testing::multiply(gso.view<double>(), std::vector<double>(12, 1.0))) {
      EXPECT_NEAR(sum, 1.0, kTolerance);
    }
  }
}

TEST(Gso, AdjacencyIsTheGraph) {
  const Graph graph = directed_graph(3);
  EXPECT_EQ(view_of(make_gso(graph, {.kind = GsoKind::kAdjacency})), to_dense(graph));
}

TEST(Gso, LaplacianIsDegreeMinusGraph) {
  const Graph graph = weighted_graph(1);
  ASSERT_GT(graph.num_self_loops(), 0);
  Dense expected = to_dense(graph);
  const std::vector<double> degree = absolute_row_sums(expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (double& entry : expected[i]) entry = -entry;
    expected[i][i] += degree[i];
  }
  expect_near(view_of(make_gso(graph, {.kind = GsoKind::kLaplacian})), expected);
}

TEST(Gso, LaplacianOfPositiveWeightsMapsConstantsToZero) {
  EdgeList edges = testing::random_edges(12, 40, 5);  // whole numbers: exact
  const Gso gso =
      make_gso(Graph::from_edges(edges, Direction::kDirected), {.kind = GsoKind::kLaplacian});
  EXPECT_THAT(testing::multiply(gso.view<double>(), std::vector<double>(12, 1.0)), Each(0.0));
}

TEST(Gso, IdentityHasOnlyTheDiagonal) {
  const Gso gso = make_gso(make_ring(4), {.kind = GsoKind::kIdentity});
  EXPECT_THAT(gso.col(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(gso.values<double>(), Each(1.0));
}

TEST(Gso, SelfLoopPoliciesDifferOnTheDiagonalOnly) {
  const Graph graph =
      Graph::from_edges({.num_nodes = 2, .src = {0, 0}, .dst = {0, 1}, .weight = {3.0, 1.0}});
  const auto walk = [&](SelfLoops policy) {
    return view_of(make_gso(graph, {.kind = GsoKind::kRandomWalk, .self_loops = policy}));
  };
  EXPECT_EQ(walk(SelfLoops::kAddMissing), (Dense{{0.75, 0.25}, {0.5, 0.5}}));
  EXPECT_EQ(walk(SelfLoops::kAddAll), (Dense{{0.8, 0.2}, {0.5, 0.5}}));
  EXPECT_EQ(walk(SelfLoops::kKeep), (Dense{{0.75, 0.25}, {1.0, 0.0}}));
}

TEST(Gso, EachRowHasOneDiagonalEntryWhereLoopsAreAdded) {
  for (const GsoOptions& options :
       {GsoOptions{.kind = GsoKind::kSymNormalized},
        GsoOptions{.kind = GsoKind::kRandomWalk, .self_loops = SelfLoops::kAddAll},
        GsoOptions{.kind = GsoKind::kLaplacian}}) {
    const Gso gso = make_gso(weighted_graph(2), options);
    for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
      const auto row = gso.col().subspan(gso.row_ptr()[i], gso.row_ptr()[i + 1] - gso.row_ptr()[i]);
      EXPECT_EQ(std::ranges::count(row, i), 1);
      EXPECT_TRUE(std::ranges::is_sorted(row));
    }
  }
}

TEST(Gso, NodeOfDegreeZeroGetsAZeroRow) {
  const Graph graph = Graph::from_edges({.num_nodes = 3, .src = {0}, .dst = {1}, .weight = {}});
  for (const GsoKind kind : {GsoKind::kSymNormalized, GsoKind::kRandomWalk}) {
    const Dense kept = view_of(make_gso(graph, {.kind = kind, .self_loops = SelfLoops::kKeep}));
    EXPECT_EQ(kept, (Dense{{0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}));
  }
  // A stored weight of zero is no degree either.
  const Graph zero = Graph::from_edges({.num_nodes = 1, .src = {0}, .dst = {0}, .weight = {0.0}});
  EXPECT_EQ(view_of(make_gso(zero)), (Dense{{0.0}}));
  EXPECT_EQ(view_of(make_gso(zero, {.kind = GsoKind::kRandomWalk})), (Dense{{0.0}}));
}

TEST(Gso, SymmetricGraphsGiveExactlySymmetricOperators) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = weighted_graph(seed);
    for (const GsoKind kind : kGraphKinds) {
      const Gso gso = make_gso(graph, {.kind = kind});
      const bool expected = view_of(gso) == testing::transposed(view_of(gso));
      EXPECT_EQ(gso.is_symmetric(), expected) << to_string(kind);
      EXPECT_EQ(gso.is_symmetric(), kind != GsoKind::kRandomWalk) << to_string(kind);
    }
  }
}

TEST(Gso, TransposeSharesWhatIsEqual) {
  const Gso symmetric = make_gso(make_star(4));
  EXPECT_EQ(symmetric.transpose_view<double>().col, symmetric.col().data());
  EXPECT_EQ(symmetric.transpose_view<double>().value, symmetric.values<double>().data());
  EXPECT_EQ(symmetric.transpose_view<float>().value, symmetric.values<float>().data());
  const Gso walk = make_gso(make_star(4), {.kind = GsoKind::kRandomWalk});
  EXPECT_EQ(walk.transpose_view<double>().col, walk.col().data());
  EXPECT_NE(walk.transpose_view<double>().value, walk.values<double>().data());
}

TEST(Gso, TransposeIsTheAdjoint) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const GsoKind kind : kGraphKinds) {
      const Gso gso = make_gso(directed_graph(seed), {.kind = kind});
      EXPECT_EQ(to_dense(gso.transpose_view<double>()), testing::transposed(view_of(gso)));
      EXPECT_EQ(to_dense(gso.transpose_view<float>()),
                testing::transposed(to_dense(gso.view<float>())));
      const std::vector<double> x = testing::random_vector(12, 1);
      const std::vector<double> y = testing::random_vector(12, 2);
      EXPECT_NEAR(testing::dot(testing::multiply(gso.view<double>(), x), y),
                  testing::dot(x, testing::multiply(gso.transpose_view<double>(), y)), 1e-12);
    }
  }
}

TEST(Gso, FloatValuesAreTheRoundedDoubles) {
  const Gso gso = make_gso(weighted_graph(0));
  ASSERT_EQ(gso.values<float>().size(), gso.values<double>().size());
  for (std::size_t e = 0; e < gso.values<float>().size(); ++e) {
    EXPECT_EQ(gso.values<float>()[e], static_cast<float>(gso.values<double>()[e]));
  }
}

TEST(Gso, WithValuesKeepsThePattern) {
  const Gso ring = make_gso(make_ring(5));
  std::vector<double> values(ring.num_nonzeros());
  for (std::size_t e = 0; e < values.size(); ++e) values[e] = static_cast<double>(e);
  const Gso other = ring.with_values(values);
  EXPECT_TRUE(std::ranges::equal(other.col(), ring.col()));
  EXPECT_TRUE(std::ranges::equal(other.values<double>(), values));
  EXPECT_EQ(other.kind(), GsoKind::kCustom);
  EXPECT_FALSE(other.is_symmetric());
  EXPECT_EQ(to_dense(other.transpose_view<double>()), testing::transposed(view_of(other)));
  EXPECT_TRUE(ring.is_symmetric());
  EXPECT_THAT([&] { ring.with_values(std::vector<double>(3)); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("Gso::with_values: expected 15 values (one per column), got 3")));
}

TEST(Gso, WithValuesOfWithValuesAndOfADirectedPatternHasItsTranspose) {
  const Graph arrows = Graph::from_edges({.num_nodes = 4, .src = {0, 1, 1, 3}, .dst = {1, 2, 0, 1}},
                                         Direction::kDirected);
  for (const Gso& gso : {make_gso(make_ring(5)), make_gso(arrows), Gso()}) {
    std::vector<double> values(gso.num_nonzeros());
    for (std::size_t e = 0; e < values.size(); ++e) values[e] = 1.0 + static_cast<double>(e * e);
    const Gso other = gso.with_values(std::vector<double>(values.size(), 2.0)).with_values(values);
    EXPECT_EQ(to_dense(other.transpose_view<double>()), testing::transposed(view_of(other)));
    EXPECT_TRUE(std::ranges::equal(other.values<float>(), values));
    for (std::int64_t k = 0; k < other.num_nonzeros(); ++k) {
      EXPECT_EQ(other.transpose_view<double>().value[k], values[other.transposed_entries()[k]]);
    }
    const auto own = gso.values<double>();
    EXPECT_EQ(gso.with_values({own.begin(), own.end()}).is_symmetric(), gso.is_symmetric());
    EXPECT_EQ(to_dense(gso.with_values({own.begin(), own.end()}).transpose_view<double>()),
              testing::transposed(view_of(gso)));
  }
}

TEST(Gso, WithValuesTakesWhatIsNotFiniteOnlyIfTold) {
  const Gso ring = make_gso(make_ring(3));
  std::vector<double> values(ring.num_nonzeros(), std::nan(""));
  EXPECT_THROW(ring.with_values(values), std::invalid_argument);
  EXPECT_TRUE(std::isnan(ring.with_values(values, ValueCheck::kNone).values<double>()[0]));
}

TEST(Gso, OfABatchIsBlockDiagonal) {
  const std::vector<Graph> graphs = {weighted_graph(0), directed_graph(1), make_path(3)};
  for (const GsoKind kind : kGraphKinds) {
    const Gso batch = make_gso(make_batch(graphs), {.kind = kind});
    EXPECT_THAT(batch.graph_ptr(), ElementsAre(0, 9, 21, 24));
    EXPECT_EQ(batch.num_graphs(), 3);
    Dense expected = testing::zeros(24);
    std::int64_t first = 0;
    for (const Graph& graph : graphs) {
      const Dense block = view_of(make_gso(graph, {.kind = kind}));
      for (std::size_t i = 0; i < block.size(); ++i) {
        std::ranges::copy(block[i], expected[first + i].begin() + first);
      }
      first += graph.num_nodes();
    }
    EXPECT_EQ(view_of(batch), expected);
  }
}

TEST(Gso, SelectedGraphsAreTheBatchOfThose) {
  const std::vector<Graph> graphs = {weighted_graph(0), directed_graph(1), make_path(3)};
  const Gso batch = make_gso(make_batch(graphs));
  const std::vector<std::int64_t> chosen = {2, 0, 2};
  const Gso part = select_graphs(batch, chosen);
  const std::vector<Graph> same = {graphs[2], graphs[0], graphs[2]};
  const Gso expected = make_gso(make_batch(same));
  EXPECT_EQ(view_of(part), view_of(expected));
  EXPECT_THAT(part.graph_ptr(), ElementsAre(0, 3, 12, 15));
  EXPECT_EQ(part.kind(), GsoKind::kSymNormalized);
  EXPECT_EQ(select_graphs(batch, {}).num_nodes(), 0);
  EXPECT_THROW(select_graphs(batch, std::vector<std::int64_t>{3}), std::out_of_range);
}

TEST(Gso, KindsHaveNames) {
  for (const GsoKind kind : kGraphKinds) {
    EXPECT_EQ(gso_kind_from_name(to_string(kind)), kind);
    EXPECT_EQ(make_gso(make_path(2), {.kind = kind}).kind(), kind);
  }
  EXPECT_EQ(to_string(GsoKind::kSymNormalized), "sym_normalized");
  EXPECT_THAT([] { gso_kind_from_name("gcn"); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("gso_kind_from_name: expected one of sym_normalized, "
                        "sym_normalized_no_loops, random_walk, random_walk_reversed, adjacency, "
                        "transpose, laplacian, identity, got 'gcn'")));
  EXPECT_EQ(to_string(GsoKind::kCustom), "custom");
}

TEST(Gso, CustomHasNoRecipe) {
  EXPECT_THAT([] { make_gso(make_path(2), {.kind = GsoKind::kCustom}); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("make_gso: a custom operator has no recipe; use Gso::from_csr")));
}

TEST(Gso, RefusesBadRowsByName) {
  using Ptr = std::vector<std::int64_t>;
  using Col = std::vector<std::int32_t>;
  const auto expect_error = [](const Ptr& row_ptr, const Col& col,
                               const std::vector<double>& values, const Ptr& graph_ptr,
                               const std::string& message) {
    EXPECT_THAT([&] { Gso::from_csr(row_ptr, col, values, graph_ptr); },
                ThrowsMessage<std::invalid_argument>(StrEq("Gso::from_csr: " + message)));
  };
  EXPECT_NO_THROW(Gso::from_csr({0, 1, 3}, {1, 0, 1}, {1.0, 2.0, 3.0}));
  expect_error({}, {}, {}, {}, "expected row_ptr to start with 0, got an empty array");
  expect_error({1, 1}, {0}, {1.0}, {}, "expected row_ptr to start with 0, got 1");
  expect_error({0, 2, 1}, {0}, {1.0}, {}, "expected row_ptr to ascend, got 1 after 2");
  expect_error({0, 1}, {0, 0}, {1.0, 1.0}, {}, "expected row_ptr to end with 2, got 1");
  expect_error({0, 1}, {0}, {}, {}, "expected 1 values (one per column), got 0");
  expect_error({0, 1}, {0}, {std::numeric_limits<double>::quiet_NaN()}, {},
               "value 0: expected it finite, got nan");
  expect_error({0, 1}, {1}, {1.0}, {}, "row 0: column 1 out of range [0, 1)");
  expect_error({0, 1}, {-1}, {1.0}, {}, "row 0: column -1 out of range [0, 1)");
  expect_error({0, 0, 2}, {1, 0}, {1.0, 1.0}, {},
               "row 1: expected columns that ascend, got 0 after 1");
  expect_error({0, 2, 2}, {1, 1}, {1.0, 1.0}, {},
               "row 0: expected columns that ascend, got 1 after 1");
  expect_error({0, 1, 1}, {1}, {1.0}, {0, 1, 2}, "row 0: column 1 out of range [0, 1)");
  expect_error({0, 0, 0}, {}, {}, {0, 1}, "expected graph_ptr to end with 2, got 1");
}

/// The graph with the weight of one of its entries changed; the other way keeps its own.
Graph with_weight(const Graph& graph, std::int64_t entry, double weight) {
  EdgeList edges{.num_nodes = graph.num_nodes()};
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      edges.src.push_back(graph.col()[e]);
      edges.dst.push_back(i);
      edges.weight.push_back(e == entry ? weight : graph.weight()[e]);
    }
  }
  return Graph::from_edges(edges, Direction::kDirected);
}

TEST(GsoGradient, OfEveryWeightIsTheCentralDifferenceOfTheOperator) {
  for (const Graph& graph : {directed_graph(4), weighted_graph(5), make_clique_chain(2, 4)}) {
    for (const GsoKind kind : kGraphKinds) {
      const Gso gso = make_gso(graph, {.kind = kind});
      const std::vector<double> direction = testing::random_vector(gso.num_nonzeros(), 3);
      const auto value = [&](const Graph& changed) {
        const Gso now = make_gso(changed, {.kind = kind});
        EXPECT_EQ(now.num_nonzeros(), gso.num_nonzeros());
        double sum = 0.0;
        for (std::size_t e = 0; e < direction.size(); ++e) {
          sum += direction[e] * now.values<double>()[e];
        }
        return sum;
      };
      const std::vector<double> gradient = weight_gradient(graph, gso, direction);
      ASSERT_EQ(std::ssize(gradient), graph.num_entries());
      constexpr double kStep = 1e-6;
      for (std::int64_t e = 0; e < graph.num_entries(); ++e) {
        const double weight = graph.weight()[e];
        const double numeric = (value(with_weight(graph, e, weight + kStep)) -
                                value(with_weight(graph, e, weight - kStep))) /
                               (2 * kStep);
        EXPECT_NEAR(gradient[e], numeric, 1e-8) << to_string(kind) << " entry " << e;
      }
    }
  }
}

TEST(GsoGradient, SaysWhatDoesNotFit) {
  const Graph graph = make_path(3);
  const Gso gso = make_gso(graph);
  const std::vector<double> too_few(2);
  EXPECT_THAT([&] { weight_gradient(graph, gso, too_few); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("weight_gradient: expected 7 numbers and 3 nodes, got 2 and 3")));
  const std::vector<double> values(7, 1.0);
  EXPECT_THAT([&] { weight_gradient(graph, gso.with_values(values), values); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("weight_gradient: a custom operator has no recipe")));
}

TEST(Gso, BorrowedMemoryIsReadInPlace) {
  for (const Graph& graph : {directed_graph(4), weighted_graph(5)}) {
    for (const GsoKind kind : {GsoKind::kSymNormalized, GsoKind::kRandomWalk}) {
      const Gso owner = make_gso(graph, {.kind = kind});
      const Gso borrowed = Gso::borrow(owner.arrays());
      EXPECT_EQ(borrowed.view<double>().value, owner.view<double>().value);
      EXPECT_EQ(borrowed.view<float>().col, owner.view<float>().col);
      EXPECT_EQ(borrowed.transpose_view<float>().row_ptr, owner.transpose_view<float>().row_ptr);
      EXPECT_EQ(borrowed.transpose_view<float>().value, owner.transpose_view<float>().value);
      EXPECT_EQ(borrowed.num_nodes(), owner.num_nodes());
      EXPECT_EQ(borrowed.num_nonzeros(), owner.num_nonzeros());
      EXPECT_EQ(borrowed.num_graphs(), 1);
      EXPECT_EQ(borrowed.is_symmetric(), owner.is_symmetric());
    }
  }
}

}  // namespace
}  // namespace mpssm::graph
