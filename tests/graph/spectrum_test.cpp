// SPDX-License-Identifier: MIT
// Spectra against closed forms, against each other, and against the theory of the paper (T2, T7).
#include "mpssm/graph/spectrum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"

#include "tests/graph/dense.h"

namespace mpssm::graph {
namespace {

using std::numbers::pi;
using testing::Dense;
using ::testing::ElementsAre;
using ::testing::StrEq;
using ::testing::ThrowsMessage;
using testing::to_dense;

// Rounding of a dense decomposition of numbers of size one.
constexpr double kDense = 1e-12;
// Iterations stop at a residual of 1e-10; values are better than that by its square, at best.
constexpr double kIterative = 1e-10;

std::vector<Graph> sample_spectra() {
  return {make_path(1),
          make_path(7),
          make_ring(8),
          make_grid(4, 5),
          make_star(9),
          make_complete(6),
          make_caveman(3, 4),
          make_ladder(6),
          make_power_law_tree(30, 1),
          make_erdos_renyi(40, 0.04, 2),  // several components
          make_barabasi_albert(30, 4, 3),
          make_clique_chain(6, 10),
          Graph::from_edges({.num_nodes = 4})};
}

EdgeList directed_cycle(std::int64_t n) {
  EdgeList edges{.num_nodes = n, .src = {}, .dst = {}, .weight = {}};
  for (std::int64_t i = 0; i < n; ++i) {
    edges.src.push_back(i);
    edges.dst.push_back((i + 1) % n);
  }
  return edges;
}

Gso adjacency(const EdgeList& edges) {
  return make_gso(Graph::from_edges(edges, Direction::kDirected), {.kind = GsoKind::kAdjacency});
}

std::vector<double> eigenvalues(const Gso& gso) {
  const auto& values = eigen_basis(gso).eigenvalues;
  return {values.begin(), values.end()};
}

// T2: the spectrum lies in [-1 + 2 / (d_max + 1), 1], and 1 has one eigenvector per component.
TEST(Spectrum, OfTheDefaultOperatorObeysTheTheory) {
  for (const Graph& graph : sample_spectra()) {
    const Gso gso = make_gso(graph);
    std::int64_t max_degree = 0;
    std::vector<double> root(graph.num_nodes());
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      const std::int64_t degree = graph.row_ptr()[i + 1] - graph.row_ptr()[i];
      max_degree = std::max(max_degree, degree);
      root[i] = std::sqrt(1.0 + static_cast<double>(degree));
    }
    const double lowest = -1.0 + 2.0 / (static_cast<double>(max_degree) + 1.0);
    std::int64_t ones = 0;
    for (const double value : eigen_basis(gso).eigenvalues) {
      EXPECT_LE(value, 1.0 + kDense);
      EXPECT_GE(value, lowest - kDense);
      ones += value > 1.0 - 1e-9;
    }
    EXPECT_EQ(ones, components(graph).count);
    const std::vector<double> image = testing::multiply(gso.view<double>(), root);
    for (std::size_t i = 0; i < root.size(); ++i) EXPECT_NEAR(image[i], root[i], kDense);
  }
}

TEST(Spectrum, ExtremesAreThoseOfTheEigenbasis) {
  for (const Graph& graph : sample_spectra()) {
    for (const GsoKind kind : {GsoKind::kSymNormalized, GsoKind::kAdjacency, GsoKind::kLaplacian}) {
      const Gso gso = make_gso(graph, {.kind = kind});
      std::vector<double> values = eigenvalues(gso);
      std::ranges::sort(values);
      const SpectrumExtremes found = spectrum_extremes(gso);
      EXPECT_TRUE(found.converged);
      EXPECT_NEAR(found.largest, values.back(), kDense);
      EXPECT_NEAR(found.smallest, values.front(), kDense);
      EXPECT_NEAR(found.radius, std::max(std::abs(values.back()), std::abs(values.front())),
                  kDense);
      values.pop_back();
      double star = 0.0;
      for (const double value : values) star = std::max(star, std::abs(value));
      EXPECT_NEAR(found.lambda_star, star, kDense);
    }
  }
}

TEST(Spectrum, LanczosAgreesWithTheFullDecomposition) {
  const Graph er = make_erdos_renyi(450, 0.02, 3);
  for (const GsoKind kind : {GsoKind::kSymNormalized, GsoKind::kAdjacency, GsoKind::kLaplacian}) {
    const Gso gso = make_gso(er, {.kind = kind});
    std::vector<double> values = eigenvalues(gso);
    const double scale = std::max(1.0, values.back());
    const SpectrumExtremes found = spectrum_extremes(gso);
    EXPECT_TRUE(found.converged);
    EXPECT_NEAR(found.largest, values.back(), kIterative * scale);
    EXPECT_NEAR(found.smallest, values.front(), kIterative * scale);
    EXPECT_NEAR(found.lambda_star,
                std::max(std::abs(values[values.size() - 2]), std::abs(values.front())),
                kIterative * scale);
  }
}

TEST(Spectrum, OfALargeRingIsKnown) {
  const double n = 1001.0;
  const SpectrumExtremes found = spectrum_extremes(make_gso(make_ring(1001)));
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.largest, 1.0, kIterative);
  EXPECT_NEAR(found.lambda_star, (1.0 + 2.0 * std::cos(2.0 * pi / n)) / 3.0, kIterative);
  EXPECT_NEAR(found.smallest, (1.0 - 2.0 * std::cos(pi / n)) / 3.0, kIterative);
}

// Largest eigenvalues with many copies: Lanczos from one start sees one of them.
TEST(Spectrum, SeesARepeatedLargestEigenvalueOfAConnectedGraph) {
  constexpr std::int64_t kSide = 21;  // of a torus; odd, so that there are four copies
  EdgeList edges{.num_nodes = kSide * kSide, .src = {}, .dst = {}, .weight = {}};
  for (std::int64_t i = 0; i < kSide; ++i) {
    for (std::int64_t j = 0; j < kSide; ++j) {
      edges.src.insert(edges.src.end(), 2, i * kSide + j);
      edges.dst.push_back(i * kSide + (j + 1) % kSide);
      edges.dst.push_back((i + 1) % kSide * kSide + j);
    }
  }
  const SpectrumExtremes torus =
      spectrum_extremes(make_gso(Graph::from_edges(edges), {.kind = GsoKind::kLaplacian}));
  EXPECT_TRUE(torus.converged);
  EXPECT_NEAR(torus.largest, 4.0 + 4.0 * std::cos(pi / kSide), 8.0 * kIterative);
  EXPECT_NEAR(torus.lambda_star, torus.largest, 8.0 * kIterative);

  const SpectrumExtremes complete =
      spectrum_extremes(make_gso(make_complete(410), {.kind = GsoKind::kLaplacian}));
  EXPECT_NEAR(complete.largest, 410.0, 410.0 * kIterative);
  EXPECT_NEAR(complete.lambda_star, 410.0, 410.0 * kIterative);
  EXPECT_NEAR(complete.smallest, 0.0, 410.0 * kIterative);
}

// The operator of a complete graph has rank one: nothing is left after deflation.
TEST(Spectrum, OfRankOneHasZeroLambdaStar) {
  const SpectrumExtremes found = spectrum_extremes(make_gso(make_complete(410)));
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.largest, 1.0, kIterative);
  EXPECT_NEAR(found.lambda_star, 0.0, kIterative);
}

// Gaps of 1e-6 and below, where plain Lanczos needs thousands of products.
TEST(Spectrum, OfALongPathConverges) {
  const double n = 4000.0;
  const SpectrumExtremes laplacian =
      spectrum_extremes(make_gso(make_path(4000), {.kind = GsoKind::kLaplacian}));
  EXPECT_TRUE(laplacian.converged);
  EXPECT_NEAR(laplacian.largest, 2.0 + 2.0 * std::cos(pi / n), 4.0 * kIterative);
  EXPECT_NEAR(laplacian.lambda_star, 2.0 + 2.0 * std::cos(2.0 * pi / n), 4.0 * kIterative);
  EXPECT_NEAR(laplacian.smallest, 0.0, 4.0 * kIterative);
  const SpectrumExtremes normalized = spectrum_extremes(make_gso(make_path(4000)));
  EXPECT_TRUE(normalized.converged);
  EXPECT_NEAR(normalized.largest, 1.0, kIterative);
  EXPECT_LT(normalized.lambda_star, 1.0 - 1e-8);
}

TEST(Spectrum, OfADisconnectedGraphHasLambdaStarOne) {
  const Graph ring = make_ring(600);
  const Gso gso = make_gso(make_batch(std::vector<Graph>{ring, make_path(500)}));
  const SpectrumExtremes found = spectrum_extremes(gso);
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.largest, 1.0, kIterative);
  EXPECT_NEAR(found.lambda_star, 1.0, kIterative);
}

TEST(Spectrum, OfManySmallPartsIsCheap) {
  const SpectrumExtremes found =
      spectrum_extremes(make_gso(make_batch(std::vector<Graph>(20'000, make_path(4)))));
  EXPECT_NEAR(found.lambda_star, 1.0, kDense);
  const SpectrumExtremes isolated =
      spectrum_extremes(make_gso(Graph::from_edges({.num_nodes = 100'000})));
  EXPECT_EQ(isolated.lambda_star, 1.0);
}

TEST(Spectrum, OfNoNodeAndOfOneNode) {
  const SpectrumExtremes none = spectrum_extremes(Gso());
  EXPECT_TRUE(none.converged);
  EXPECT_EQ(none.largest, 0.0);
  EXPECT_EQ(none.lambda_star, 0.0);
  const SpectrumExtremes one = spectrum_extremes(Gso::from_csr({0, 1}, {0}, {-3.0}));
  EXPECT_TRUE(one.converged);
  EXPECT_EQ(one.largest, -3.0);
  EXPECT_EQ(one.smallest, -3.0);
  EXPECT_EQ(one.radius, 3.0);
  EXPECT_EQ(one.lambda_star, 0.0);
}

// T7b: numbers of the reproduction protocol.
TEST(Spectrum, OfTheBottleneckIsThatOfThePaper) {
  const Gso gso = make_gso(make_clique_chain(6, 10));
  EXPECT_NEAR(spectrum_extremes(gso).lambda_star, 0.9988189, 1e-6);
  std::vector<double> x(65, 0.0);
  x[60] = 1.0;
  std::vector<double> entry = {x[64]};  // of the k-th power, between the first and last bridge
  for (int k = 1; k <= 20'000; ++k) {
    x = testing::multiply(gso.view<double>(), x);
    entry.push_back(x[64]);
  }
  for (int k = 0; k <= 11; ++k) EXPECT_EQ(entry[k], 0.0);
  EXPECT_NEAR(entry[12], 5.759350e-11, 1e-4 * 5.759350e-11);
  EXPECT_NEAR(entry[100], 3.9585e-5, 1e-4 * 3.9585e-5);
  EXPECT_NEAR(entry[1000], 2.7301e-3, 1e-4 * 2.7301e-3);
  EXPECT_NEAR(entry[5000], 4.7815e-3, 1e-4 * 4.7815e-3);
  EXPECT_NEAR(entry[20'000], 3.0 / 625.0, 1e-9);
}

TEST(Spectrum, RefusesOperatorsThatAreNotSymmetric) {
  const Gso walk = make_gso(make_star(4), {.kind = GsoKind::kRandomWalk});
  EXPECT_THAT([&] { spectrum_extremes(walk); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("spectrum_extremes: expected a symmetric operator, got a random_walk "
                        "operator that differs from its transpose")));
  EXPECT_THAT([&] { eigen_basis(walk); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("eigen_basis: expected a symmetric operator, got a random_walk operator "
                        "that differs from its transpose")));
}

TEST(SpectralRadius, OfSymmetricOperatorsIsTheLargestMagnitude) {
  EXPECT_NEAR(spectral_radius(make_gso(make_path(9))), 1.0, kDense);
  // Bipartite with the sign turned: the radius is at the negative end.
  const Gso star = make_gso(make_star(5), {.kind = GsoKind::kAdjacency});
  EXPECT_NEAR(spectral_radius(star.with_values(std::vector<double>(8, -1.0))), 2.0, kDense);
  EXPECT_NEAR(spectral_radius(Gso::from_csr({0, 1, 2}, {0, 1}, {-3.0, 1.0})), 3.0, kDense);
}

TEST(SpectralRadius, OfNothingIsZero) {
  EXPECT_EQ(spectral_radius(Gso()), 0.0);
  EXPECT_EQ(spectral_radius(Gso::from_csr({0, 0, 0}, {}, {})), 0.0);
  // Stored zeros, not symmetric in pattern.
  EXPECT_EQ(spectral_radius(Gso::from_csr({0, 1, 1}, {1}, {0.0})), 0.0);
}

TEST(SpectralRadius, OfNilpotentOperatorsIsZero) {
  for (const std::int64_t n : {2, 50, 3000}) {
    EdgeList edges = directed_cycle(n);
    edges.src.pop_back();
    edges.dst.pop_back();
    EXPECT_EQ(spectral_radius(adjacency(edges)), 0.0) << n;
  }
}

TEST(SpectralRadius, OfADirectedCycleIsTheGeometricMeanOfItsWeights) {
  for (const std::int64_t n : {3, 60, 2000}) {
    EXPECT_NEAR(spectral_radius(adjacency(directed_cycle(n))), 1.0, kDense) << n;
  }
  EdgeList edges = directed_cycle(60);
  double log_sum = 0.0;
  for (const double draw : testing::random_vector(60, 1)) {
    edges.weight.push_back(1.5 + draw);
    log_sum += std::log(edges.weight.back());
  }
  EXPECT_NEAR(spectral_radius(adjacency(edges)), std::exp(log_sum / 60.0), kIterative);
}

TEST(SpectralRadius, SeesComplexPairs) {
  // Rotation by a quarter turn, doubled.
  EXPECT_NEAR(spectral_radius(Gso::from_csr({0, 1, 2}, {1, 0}, {-2.0, 2.0})), 2.0, kDense);
}

TEST(SpectralRadius, OfARandomWalkIsOne) {
  for (const std::int64_t n : {40, 2000}) {
    const Gso gso = make_gso(make_barabasi_albert(n, 2, 1), {.kind = GsoKind::kRandomWalk});
    ASSERT_FALSE(gso.is_symmetric());
    EXPECT_NEAR(spectral_radius(gso), 1.0, kIterative) << n;
  }
}

// D S D^-1 has the spectrum of S: a nonsymmetric operator with a known radius. Power iteration
// settles on the random graph, not on the grid.
TEST(SpectralRadius, IsInvariantUnderScaling) {
  for (const Graph& graph : {make_random_connected(500, 2000, 4), make_grid(20, 25)}) {
    const Gso plain = make_gso(graph);
    for (const bool has_signs : {false, true}) {
      std::vector<double> symmetric(plain.values<double>().begin(), plain.values<double>().end());
      std::vector<double> scaled(symmetric.size());
      for (std::int64_t i = 0; i < plain.num_nodes(); ++i) {
        for (std::int64_t e = plain.row_ptr()[i]; e < plain.row_ptr()[i + 1]; ++e) {
          const std::int64_t j = plain.col()[e];
          if (has_signs && (i + j) % 3 == 0) symmetric[e] *= -1.0;
          scaled[e] =
              symmetric[e] * static_cast<double>(1 + i % 7) / static_cast<double>(1 + j % 7);
        }
      }
      const double expected = spectral_radius(plain.with_values(symmetric));
      EXPECT_NEAR(spectral_radius(plain.with_values(scaled)), expected, 1e-8);
      EXPECT_EQ(expected < 0.999, has_signs);
    }
  }
}

TEST(SpectralRadius, IsTheLargestOverStronglyConnectedParts) {
  // Two cycles (radius 2 and 3) joined one way, behind a long tail.
  EdgeList edges{.num_nodes = 6,
                 .src = {0, 1, 2, 3, 1, 3, 4},
                 .dst = {1, 0, 3, 2, 2, 4, 5},
                 .weight = {2.0, 2.0, 3.0, 3.0, 50.0, 70.0, 90.0}};
  EXPECT_NEAR(spectral_radius(adjacency(edges)), 3.0, kDense);
}

TEST(EigenBasis, IsOrthogonalAndRebuildsTheOperator) {
  std::vector<Graph> graphs = sample_spectra();
  graphs.push_back(make_batch(graphs));
  for (const Graph& graph : graphs) {
    const Gso gso = make_gso(graph, {.kind = GsoKind::kLaplacian});
    const EigenBasis& basis = eigen_basis(gso);
    const Dense p = to_dense(basis.view<double>());
    const Dense expected = to_dense(gso.view<double>());
    const std::int64_t n = graph.num_nodes();
    ASSERT_EQ(std::ssize(basis.eigenvalues), n);
    EXPECT_EQ(to_dense(basis.transpose_view<double>()), testing::transposed(p));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double gram = 0.0;
        double rebuilt = 0.0;
        for (std::int64_t k = 0; k < n; ++k) {
          gram += p[i][k] * p[j][k];
          rebuilt += p[i][k] * basis.eigenvalues[k] * p[j][k];
        }
        EXPECT_NEAR(gram, i == j ? 1.0 : 0.0, kDense);
        EXPECT_NEAR(rebuilt, expected[i][j], 20.0 * kDense);
      }
    }
  }
}

TEST(EigenBasis, HasOneDenseBlockPerGraph) {
  const Gso gso = make_gso(make_batch(std::vector<Graph>{make_path(2), make_path(3)}));
  const EigenBasis& basis = eigen_basis(gso);
  EXPECT_THAT(basis.row_ptr, ElementsAre(0, 2, 4, 7, 10, 13));
  EXPECT_THAT(basis.col, ElementsAre(0, 1, 0, 1, 2, 3, 4, 2, 3, 4, 2, 3, 4));
  EXPECT_EQ(eigen_basis_nonzeros(gso), 13);
  EXPECT_TRUE(std::is_sorted(basis.eigenvalues.begin(), basis.eigenvalues.begin() + 2));
  EXPECT_TRUE(std::is_sorted(basis.eigenvalues.begin() + 2, basis.eigenvalues.end()));
}

TEST(EigenBasis, OfNoNodeIsEmpty) {
  const Gso none;
  EXPECT_THAT(eigen_basis(none).row_ptr, ElementsAre(0));
  const Gso batch = make_gso(make_batch(std::vector<Graph>{Graph(), make_path(2), Graph()}));
  EXPECT_THAT(eigen_basis(batch).row_ptr, ElementsAre(0, 2, 4));
}

TEST(EigenBasis, FloatsAreTheRoundedDoubles) {
  const Gso gso = make_gso(make_ladder(4));
  const EigenBasis& basis = eigen_basis(gso);
  for (std::size_t e = 0; e < basis.vectors.size(); ++e) {
    EXPECT_EQ(basis.view<float>().value[e], static_cast<float>(basis.vectors[e]));
    EXPECT_EQ(basis.transpose_view<float>().value[e],
              static_cast<float>(basis.vectors_transposed[e]));
  }
}

TEST(EigenBasis, IsComputedOnceForAllCopiesAndThreads) {
  const Gso gso = make_gso(make_ring(60));
  std::vector<const EigenBasis*> found(4);
  std::vector<std::thread> threads;
  for (auto& slot : found) {
    threads.emplace_back([&slot, gso] { slot = &eigen_basis(gso); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const EigenBasis* basis : found) EXPECT_EQ(basis, &eigen_basis(gso));
}

TEST(EigenBasis, OfABorrowedOperatorIsTheOneItWasGiven) {
  const Gso owner = make_gso(make_ladder(4));
  const EigenBasis& basis = eigen_basis(owner);
  const Gso borrowed = Gso::borrow(owner.arrays());
  EigenBasis given;
  given.eigenvalues = std::span(basis.eigenvalues);
  given.row_ptr = std::span(basis.row_ptr);
  given.col = std::span(basis.col);
  given.vectors_float = std::span(basis.vectors_float);
  give_eigen_basis(borrowed, std::move(given));
  EXPECT_EQ(eigen_basis(borrowed).view<float>().value, basis.view<float>().value);
  EXPECT_EQ(eigen_basis(borrowed).eigenvalues.data(), basis.eigenvalues.data());
  EXPECT_EQ(eigen_basis_nonzeros(borrowed), eigen_basis_nonzeros(owner));
}

TEST(EigenBasis, RefusesLargeGraphs) {
  const Gso gso = make_gso(make_batch(std::vector<Graph>{make_path(3), make_path(4097)}));
  EXPECT_THAT([&] { eigen_basis(gso); },
              ThrowsMessage<std::invalid_argument>(StrEq(
                  "eigen_basis: expected graphs of at most 4096 nodes, got graph 1 with 4097")));
}

}  // namespace
}  // namespace mpssm::graph
