// SPDX-License-Identifier: MIT
// The 2^(-k/2) of the paper where it holds (T6, T6b), where it does not (T6c), and what a real
// network does (T6d); Jacobians against dense powers and finite differences.
#include "mpssm/analysis/vanishing.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <Eigen/Dense>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/random.h"
#include "mpssm/graph/generators.h"

namespace mpssm::analysis {
namespace {

using graph::Gso;
using graph::GsoKind;
using graph::make_gso;
using ::testing::Each;
using ::testing::Eq;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kChannels = 256;
constexpr std::int64_t kDraws = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double masked(WeightKind kind, std::int64_t k) {
  return masked_ratio(kind, kChannels, k, kDraws, 1);
}

// Symmetric about zero, which is all that the tests need.
std::vector<double> random_numbers(std::int64_t count, base::Random& random) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = 2.0 * random.unit() - 1.0;
  return numbers;
}

Matrix to_matrix(const std::vector<double>& numbers, std::int64_t columns) {
  return Eigen::Map<const Matrix>(numbers.data(), std::ssize(numbers) / columns, columns);
}

std::vector<double> to_vector(const Matrix& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

Matrix to_eigen(const Gso& gso) {
  Matrix dense = Matrix::Zero(gso.num_nodes(), gso.num_nodes());
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      dense(i, gso.col()[e]) = gso.values<double>()[e];
    }
  }
  return dense;
}

Matrix power(const Matrix& base, std::int64_t k) {
  Matrix result = Matrix::Identity(base.rows(), base.cols());
  for (std::int64_t i = 0; i < k; ++i) result = result * base;
  return result;
}

/// The network itself, not its derivative.
Matrix run_gcn(const Matrix& gso, const std::vector<Matrix>& weights, Matrix features) {
  for (const Matrix& weight : weights) features = (gso * features * weight).cwiseMax(0.0);
  return features;
}

std::vector<double> stack(const std::vector<Matrix>& weights) {
  std::vector<double> numbers;
  for (const Matrix& weight : weights) {
    numbers.insert(numbers.end(), weight.data(), weight.data() + weight.size());
  }
  return numbers;
}

double norm(const std::vector<double>& numbers) { return to_matrix(numbers, 1).norm(); }

// A directed operator with loops: products from the wrong side or with a transpose would show.
Gso directed_operator() {
  return Gso::from_csr({0, 2, 4, 6, 9}, {0, 1, 1, 2, 0, 3, 0, 2, 3},
                       {0.5, -1.0, 0.3, 2.0, 0.7, 1.1, -0.4, 0.9, 0.2});
}

Gso random_graph_operator() { return make_gso(graph::make_random_connected(40, 100, 7)); }

Gso identity_operator(std::int64_t n) {
  return make_gso(graph::make_path(n), {.kind = GsoKind::kIdentity});
}

TEST(MaskedRatio, OfOrthogonalWeightsIsThatOfThePaper) {
  for (const std::int64_t k : {2, 4, 8}) {
    EXPECT_NEAR(masked(WeightKind::kOrthogonal, k) / paper_ratio(k), 1.0, 0.05) << k;
  }
}

TEST(MaskedRatio, OfGaussianWeightsIsThatOfThePaper) {
  for (const std::int64_t k : {2, 4, 8}) {
    EXPECT_NEAR(masked(WeightKind::kGaussian, k) / paper_ratio(k), 1.0, 0.1) << k;
  }
}

// Masks and weights do not commute: each further mask halves the mean that this matrix passes on.
TEST(MaskedRatio, OfRankOneWeightsRefutesThePaper) {
  for (const std::int64_t k : {2, 4, 8}) {
    const double ratio = masked(WeightKind::kRankOne, k);
    EXPECT_NEAR(ratio / rank_one_ratio(k), 1.0, 0.1) << k;
    EXPECT_LT(ratio, 0.75 * paper_ratio(k)) << k;
  }
}

TEST(MaskedRatio, IsOneWithoutStepsAndTheSameForAllAfterOne) {
  for (const WeightKind kind :
       {WeightKind::kOrthogonal, WeightKind::kGaussian, WeightKind::kRankOne}) {
    EXPECT_EQ(masked_ratio(kind, 5, 0, 70, 3), 1.0) << to_string(kind);
    EXPECT_NEAR(masked(kind, 1), std::sqrt(0.5), 0.02) << to_string(kind);
  }
}

// One channel survives k masks with probability 2^-k, and then whole: the square root of that.
TEST(MaskedRatio, OfOneChannelIsExact) {
  for (const WeightKind kind :
       {WeightKind::kOrthogonal, WeightKind::kGaussian, WeightKind::kRankOne}) {
    EXPECT_NEAR(masked_ratio(kind, 1, 2, 20000, 5), 0.5, 0.02) << to_string(kind);
    EXPECT_EQ(masked_ratio(kind, 1, 200, 10, 5), 0.0) << to_string(kind);
  }
}

TEST(MaskedRatio, DoesNotUnderflowBeforeItsResultDoes) {
  const double ratio = masked_ratio(WeightKind::kRankOne, kChannels, 800, 2, 1);
  EXPECT_NEAR(std::log2(ratio), 0.5 - 800.0, 15.0);
}

TEST(MaskedRatio, DependsOnArgumentsAndSeedAlone) {
  const auto measure = [](std::uint64_t seed) {
    return masked_ratio(WeightKind::kOrthogonal, 16, 3, 100, seed);
  };
  EXPECT_EQ(measure(4), measure(4));
  EXPECT_NE(measure(4), measure(5));
}

TEST(MaskedRatio, RejectsSizesThatMakeNoSense) {
  constexpr WeightKind kKind = WeightKind::kGaussian;
  EXPECT_THROW(masked_ratio(kKind, 0, 2, 10, 1), std::invalid_argument);
  EXPECT_THROW(masked_ratio(kKind, 4, -1, 10, 1), std::invalid_argument);
  EXPECT_THROW(masked_ratio(kKind, 4, 2, 0, 1), std::invalid_argument);
  EXPECT_THROW(masked_ratio(static_cast<WeightKind>(9), 4, 2, 10, 1), std::invalid_argument);
  EXPECT_THROW(paper_ratio(-1), std::invalid_argument);
  EXPECT_THROW(rank_one_ratio(-1), std::invalid_argument);
}

TEST(PredictedRatios, AreTheirFormulas) {
  EXPECT_EQ(paper_ratio(0), 1.0);
  EXPECT_EQ(rank_one_ratio(0), 1.0);
  EXPECT_DOUBLE_EQ(paper_ratio(8), 0.0625);
  EXPECT_DOUBLE_EQ(rank_one_ratio(1), paper_ratio(1));
  EXPECT_DOUBLE_EQ(rank_one_ratio(4), std::sqrt(2.0) / 16.0);
}

TEST(WeightKind, HasNames) {
  EXPECT_EQ(to_string(WeightKind::kOrthogonal), "orthogonal");
  EXPECT_EQ(to_string(WeightKind::kGaussian), "gaussian");
  EXPECT_EQ(to_string(WeightKind::kRankOne), "rank_one");
}

// With weights shared by all layers, node i answers to node j with (A^k)_ij (W')^k.
TEST(GcnTangents, OfTheLinearTwinAreTheClosedForm) {
  constexpr std::int64_t kWidth = 5;
  for (const Gso& gso : {directed_operator(), make_gso(graph::make_random_connected(12, 20, 3))}) {
    base::Random random(11);
    const std::int64_t n = gso.num_nodes();
    const Matrix weight = to_matrix(random_numbers(kWidth * kWidth, random), kWidth);
    const std::vector<double> features = random_numbers(n * kWidth, random);
    for (const std::int64_t k : {0, 1, 2, 7}) {
      const Matrix reach = power(to_eigen(gso), k);
      const Matrix mixing = power(weight.transpose(), k);
      const std::vector<double> weights = stack(std::vector<Matrix>(k, weight));
      for (std::int64_t j = 0; j < n; ++j) {
        Matrix direction = Matrix::Zero(n, kWidth);
        direction.row(j) = to_matrix(random_numbers(kWidth, random), kWidth);
        const std::vector<double> linear =
            gcn_tangents(gso, kWidth, weights, features, to_vector(direction)).linear;
        for (std::int64_t i = 0; i < n; ++i) {
          const Eigen::VectorXd expected = reach(i, j) * mixing * direction.row(j).transpose();
          const Eigen::VectorXd got = to_matrix(linear, kWidth).row(i);
          EXPECT_LE((got - expected).cwiseAbs().maxCoeff(), 1e-10) << i << " " << j << " " << k;
        }
      }
    }
  }
}

TEST(GcnTangents, OfTheReluNetworkAreItsFiniteDifferences) {
  constexpr std::int64_t kWidth = 6;
  constexpr double kStep = 1e-7;  // short enough to cross no kink
  const Gso gso = directed_operator();
  base::Random random(2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<Matrix> weights(3);
    for (Matrix& weight : weights) {
      weight = to_matrix(random_numbers(kWidth * kWidth, random), kWidth);
    }
    const std::vector<double> features = random_numbers(gso.num_nodes() * kWidth, random);
    const std::vector<double> direction = random_numbers(gso.num_nodes() * kWidth, random);
    const Matrix start = to_matrix(features, kWidth);
    const Matrix moved = start + kStep * to_matrix(direction, kWidth);
    const Matrix expected =
        (run_gcn(to_eigen(gso), weights, moved) - run_gcn(to_eigen(gso), weights, start)) / kStep;
    const std::vector<double> relu =
        gcn_tangents(gso, kWidth, stack(weights), features, direction).relu;
    EXPECT_LE((to_matrix(relu, kWidth) - expected).cwiseAbs().maxCoeff(), 1e-6);
  }
}

// The counterexample of the proof's setting, as a network: its masks are all or nothing.
TEST(GcnTangents, OfRankOneWeightsLoseNothingOrEverything) {
  constexpr std::int64_t kWidth = 8;
  const Gso gso = make_gso(graph::make_ring(6));
  base::Random random(3);
  const std::vector<double> direction = random_numbers(6 * kWidth, random);
  const std::vector<double> weights(4 * kWidth * kWidth, 1.0 / kWidth);
  const auto at = [&](double feature) {
    return gcn_tangents(gso, kWidth, weights, std::vector<double>(6 * kWidth, feature), direction);
  };
  EXPECT_EQ(at(1.0).relu, at(1.0).linear);
  EXPECT_GT(norm(at(1.0).linear), 0.0);
  EXPECT_THAT(at(-1.0).relu, Each(Eq(0.0)));
  EXPECT_THAT(at(0.0).relu, Each(Eq(0.0)));  // the kink itself
  EXPECT_EQ(at(-1.0).linear, at(1.0).linear);
}

// ReLU looks at signs alone, so a factor on the weights multiplies both tangents alike: the choice
// between 1 / channels and He's 2 / channels is none.
TEST(GcnTangents, ScaleWithTheWeights) {
  constexpr std::int64_t kWidth = 4;
  constexpr int kLayers = 3;
  const Gso gso = directed_operator();
  base::Random random(5);
  const std::vector<double> features = random_numbers(4 * kWidth, random);
  const std::vector<double> direction = random_numbers(4 * kWidth, random);
  std::vector<double> weights = random_numbers(kLayers * kWidth * kWidth, random);
  const GcnTangents before = gcn_tangents(gso, kWidth, weights, features, direction);
  for (double& weight : weights) weight *= 4.0;
  const GcnTangents after = gcn_tangents(gso, kWidth, weights, features, direction);
  EXPECT_GT(norm(before.relu), 0.0);
  EXPECT_EQ(norm(after.relu), norm(before.relu) * 64.0);
  EXPECT_EQ(norm(after.linear), norm(before.linear) * 64.0);
}

TEST(GcnTangents, OfNoNodesAreEmpty) {
  const GcnTangents tangents = gcn_tangents(Gso(), 2, std::vector<double>(4, 1.0), {}, {});
  EXPECT_TRUE(tangents.relu.empty());
  EXPECT_TRUE(tangents.linear.empty());
}

TEST(GcnTangents, RejectWrongSizesAndNumbers) {
  const Gso gso = make_gso(graph::make_path(3));
  const std::vector<double> weights(4, 1.0);
  const std::vector<double> rows(6, 1.0);
  EXPECT_NO_THROW(gcn_tangents(gso, 2, weights, rows, rows));
  EXPECT_THROW(gcn_tangents(gso, 0, weights, rows, rows), std::invalid_argument);
  EXPECT_THROW(gcn_tangents(gso, 2, rows, rows, rows), std::invalid_argument);
  EXPECT_THROW(gcn_tangents(gso, 2, weights, weights, rows), std::invalid_argument);
  EXPECT_THROW(gcn_tangents(gso, 2, weights, rows, weights), std::invalid_argument);
  EXPECT_THROW(gcn_tangents(gso, std::int64_t{1} << 32, weights, rows, rows),
               std::invalid_argument);
  for (const double bad : {kNan, kInfinity}) {
    EXPECT_THROW(gcn_tangents(gso, 2, std::vector<double>(4, bad), rows, rows),
                 std::invalid_argument);
    EXPECT_THROW(gcn_tangents(gso, 2, weights, std::vector<double>(6, bad), rows),
                 std::invalid_argument);
    EXPECT_THROW(gcn_tangents(gso, 2, weights, rows, std::vector<double>(6, bad)),
                 std::invalid_argument);
  }
  EXPECT_THROW(gcn_tangents(gso, 2, std::vector<double>(4, 1e308), rows, rows),
               std::invalid_argument);
}

TEST(GcnRatio, OfARealNetworkIsNearThePaper) {
  const Gso gso = random_graph_operator();
  for (const LayerWeights weights : {LayerWeights::kFresh, LayerWeights::kShared}) {
    for (const std::int64_t k : {2, 5, 8}) {
      const double rate =
          gcn_log2_ratio_per_layer(gso, k, {.networks = 16, .directions = 2, .weights = weights});
      EXPECT_GT(rate, -0.80) << k;
      EXPECT_LT(rate, -0.45) << k;
    }
  }
}

// Without neighbours, and on the complete graph, where all nodes see the same signs, the paper's
// rate is met.
TEST(GcnRatio, IsThatOfThePaperWhereNodesShareTheirMasks) {
  for (const Gso& gso : {identity_operator(10), make_gso(graph::make_complete(10))}) {
    EXPECT_NEAR(gcn_log2_ratio_per_layer(gso, 4), -0.5, 0.04);
  }
}

// A sum over neighbours keeps its share of what passed equal masks, and less of what passed unequal
// ones. Equal features at all nodes of a ring give equal masks.
TEST(GcnRatio, FallsWhereNeighboursDisagreeInTheirMasks) {
  constexpr std::int64_t kNodes = 20;
  constexpr std::int64_t kWidth = 32;
  constexpr int kLayers = 4;
  constexpr int kNetworks = 30;
  const Gso gso = make_gso(graph::make_ring(kNodes));
  base::Random random(8);
  double equal = 0.0;
  double unequal = 0.0;
  for (int network = 0; network < kNetworks; ++network) {
    const std::vector<double> weights = random_numbers(kLayers * kWidth * kWidth, random);
    const std::vector<double> features = random_numbers(kNodes * kWidth, random);
    const std::vector<double> direction = random_numbers(kNodes * kWidth, random);
    const Matrix same = to_matrix(features, kWidth).row(0).replicate(kNodes, 1);
    const auto rate = [&](const std::vector<double>& at) {
      const GcnTangents tangents = gcn_tangents(gso, kWidth, weights, at, direction);
      return std::log2(norm(tangents.relu) / norm(tangents.linear)) / kLayers;
    };
    equal += rate(to_vector(same)) / kNetworks;
    unequal += rate(features) / kNetworks;
  }
  EXPECT_NEAR(equal, -0.5, 0.05);
  EXPECT_LT(unequal, equal - 0.03);
}

TEST(GcnRatio, IsOneWithoutLayers) { EXPECT_EQ(gcn_log2_ratio(random_graph_operator(), 0), 0.0); }

// Weights of the two settings are the same draw as long as there is one layer.
TEST(GcnRatio, SharesWeightsFromTheSecondLayerOn) {
  const Gso gso = random_graph_operator();
  const auto measure = [&](std::int64_t k, LayerWeights weights) {
    return gcn_log2_ratio(gso, k, {.networks = 1, .weights = weights});
  };
  EXPECT_EQ(measure(1, LayerWeights::kFresh), measure(1, LayerWeights::kShared));
  EXPECT_NE(measure(2, LayerWeights::kFresh), measure(2, LayerWeights::kShared));
}

TEST(GcnRatio, DependsOnArgumentsAndSeedAlone) {
  const Gso gso = random_graph_operator();
  const auto measure = [&](std::uint64_t seed) {
    return gcn_log2_ratio(gso, 3, {.channels = 8, .seed = seed});
  };
  EXPECT_EQ(measure(4), measure(4));
  EXPECT_NE(measure(4), measure(5));
}

// Operators that grow by 1e200 in each layer, or shrink by as much, leave the ratio alone.
TEST(GcnRatio, DoesNotDependOnTheScaleOfTheOperator) {
  const Gso gso = random_graph_operator();
  const GcnProbe probe{.channels = 16, .networks = 4};
  const double expected = gcn_log2_ratio(gso, 6, probe);
  for (const double factor : {0x1p600, 0x1p-600}) {
    std::vector<double> values(gso.values<double>().begin(), gso.values<double>().end());
    for (double& value : values) value *= factor;
    EXPECT_DOUBLE_EQ(gcn_log2_ratio(gso.with_values(values), 6, probe), expected);
  }
}

TEST(GcnRatio, OfADeadNetworkIsMinusInfinity) {
  EXPECT_EQ(gcn_log2_ratio(identity_operator(1), 50, {.channels = 1, .networks = 4}), -kInfinity);
}

TEST(GcnRatio, RejectsWhatHasNoRatio) {
  const Gso gso = make_gso(graph::make_path(3));
  EXPECT_THROW(gcn_log2_ratio(Gso(), 2), std::invalid_argument);
  EXPECT_THROW(gcn_log2_ratio(gso, -1), std::invalid_argument);
  EXPECT_THROW(gcn_log2_ratio_per_layer(gso, 0), std::invalid_argument);
  EXPECT_THROW(gcn_log2_ratio(gso, 2, {.channels = 0}), std::invalid_argument);
  EXPECT_THROW(gcn_log2_ratio(gso, 2, {.networks = 0}), std::invalid_argument);
  EXPECT_THROW(gcn_log2_ratio(gso, 2, {.directions = 0}), std::invalid_argument);
  const Gso nilpotent = Gso::from_csr({0, 1, 1}, {1}, {1.0});
  EXPECT_NO_THROW(gcn_log2_ratio(nilpotent, 1));
  EXPECT_THROW(gcn_log2_ratio(nilpotent, 2), std::invalid_argument);
}

TEST(VanishingTable, HoldsTheMeasurementsOfEachDepth) {
  const Gso gso = random_graph_operator();
  const VanishingOptions options{
      .max_k = 5, .channels = 32, .draws = 70, .seed = 6, .gcn = {.channels = 16, .networks = 3}};
  const std::vector<VanishingRow> rows = vanishing_table(gso, options);
  ASSERT_EQ(rows.size(), 3u);
  std::int64_t k = 1;
  for (const VanishingRow& row : rows) {
    EXPECT_EQ(row.k, k);
    EXPECT_EQ(row.paper, paper_ratio(k));
    EXPECT_EQ(row.orthogonal, masked_ratio(WeightKind::kOrthogonal, 32, k, 70, 6));
    EXPECT_EQ(row.gaussian, masked_ratio(WeightKind::kGaussian, 32, k, 70, 6));
    EXPECT_EQ(row.rank_one, masked_ratio(WeightKind::kRankOne, 32, k, 70, 6));
    EXPECT_EQ(row.rank_one_limit, rank_one_ratio(k));
    EXPECT_EQ(row.gcn, std::exp2(gcn_log2_ratio(gso, k, options.gcn)));
    k *= 2;
  }
  EXPECT_EQ(vanishing_table(gso, {.max_k = 1, .channels = 2, .draws = 1}).size(), 1u);
  EXPECT_EQ(vanishing_table(gso, {.max_k = 4, .channels = 2, .draws = 1}).size(), 3u);
  EXPECT_THROW(vanishing_table(gso, {.max_k = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::analysis
