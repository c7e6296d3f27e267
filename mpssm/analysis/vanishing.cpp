// SPDX-License-Identifier: MIT
#include "mpssm/analysis/vanishing.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include <Eigen/Dense>

#include "mpssm/base/random.h"
#include "mpssm/kernels/spmm.h"

namespace mpssm::analysis {
namespace {

using base::Random;
using graph::Gso;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Many vectors share one W, so that a chain costs matrix products and few factorisations.
constexpr std::int64_t kDrawsPerWeight = 64;

void require_at_least(const char* function, const char* name, std::int64_t value,
                      std::int64_t least) {
  if (value >= least) return;
  throw std::invalid_argument(
      fmt::format("{}: expected {} >= {}, got {}", function, name, least, value));
}

// Box-Muller; 1 - u is never zero.
double gaussian(Random& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.unit()));
  return radius * std::cos(2.0 * std::numbers::pi * random.unit());
}

Matrix gaussian_matrix(std::int64_t rows, std::int64_t columns, Random& random) {
  Matrix matrix(rows, columns);
  for (double& entry : matrix.reshaped<Eigen::RowMajor>()) entry = gaussian(random);
  return matrix;
}

Matrix gaussian_weight(std::int64_t channels, Random& random) {
  return gaussian_matrix(channels, channels, random) / std::sqrt(static_cast<double>(channels));
}

Matrix draw_weight(WeightKind kind, std::int64_t channels, Random& random) {
  switch (kind) {
    case WeightKind::kOrthogonal: {
      const Eigen::HouseholderQR<Matrix> qr(gaussian_matrix(channels, channels, random));
      // Q is uniform once R has a positive diagonal.
      const Eigen::VectorXd signs = qr.matrixQR().diagonal().cwiseSign();
      return Matrix(qr.householderQ()) * signs.asDiagonal();
    }
    case WeightKind::kGaussian:
      return gaussian_weight(channels, random);
    case WeightKind::kRankOne:
      return Matrix::Constant(channels, channels, 1.0 / static_cast<double>(channels));
  }
  throw std::invalid_argument(
      fmt::format("masked_ratio: expected a WeightKind, got {}", static_cast<int>(kind)));
}

// A block of vectors times 2^exponent, so that no depth overflows or underflows. Powers of two do
// not round.
struct Scaled {
  Matrix value;
  std::int64_t exponent = 0;

  void rescale() {
    if (!value.allFinite()) {
      throw std::invalid_argument(
          "gcn_tangents: expected weights and an operator within the range of double, got an "
          "overflow in one layer");
    }
    const double largest = value.cwiseAbs().maxCoeff();
    if (largest == 0.0) return;
    const int shift = std::ilogb(largest);
    value = value.unaryExpr([shift](double x) { return std::scalbn(x, -shift); });
    exponent += shift;
  }
};

double log2_ratio(double squared_norm, double other_squared_norm, std::int64_t exponent) {
  return 0.5 * std::log2(squared_norm / other_squared_norm) + static_cast<double>(exponent);
}

// log2 of the root mean square of numbers given by their log2.
double log2_root_mean_square(const std::vector<double>& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  if (largest == -std::numeric_limits<double>::infinity()) return largest;
  double sum = 0.0;
  for (const double log : logs) sum += std::exp2(2.0 * (log - largest));
  return largest + 0.5 * std::log2(sum / static_cast<double>(logs.size()));
}

void apply_random_mask(Matrix& vectors, Random& random) {
  for (double& entry : vectors.reshaped<Eigen::RowMajor>()) {
    if (random.bits() >> 63 == 0) entry = 0.0;
  }
}

// x W for a matrix of nodes by (directions, channels): W acts on the channels.
Matrix times_weight(const Matrix& x, const Matrix& weight) {
  Matrix product(x.rows(), x.cols());
  const std::int64_t vectors = x.size() / weight.rows();
  Eigen::Map<Matrix>(product.data(), vectors, weight.cols()).noalias() =
      Eigen::Map<const Matrix>(x.data(), vectors, weight.rows()) * weight;
  return product;
}

Matrix aggregate(const Gso& gso, const Matrix& x) {
  Matrix sum(x.rows(), x.cols());
  kernels::spmm({.a = gso.view<double>(),
                 .x = x.data(),
                 .x_stride = x.cols(),
                 .y = sum.data(),
                 .y_stride = sum.cols(),
                 .width = x.cols()},
                0, x.rows());
  return sum;
}

// The state of both networks between layers. Tangents are [nodes, directions, channels].
struct GcnPair {
  Scaled features;  // of the ReLU network
  Scaled relu;
  Scaled linear;

  GcnPair(Matrix start, const Matrix& directions)
      : features{std::move(start)}, relu{directions}, linear{directions} {}

  void apply_layer(const Gso& gso, const Matrix& weight) {
    for (Scaled* block : {&features, &relu, &linear}) {
      block->value = times_weight(aggregate(gso, block->value), weight);
    }
    apply_relu();
    for (Scaled* block : {&features, &relu, &linear}) block->rescale();
  }

 private:
  void apply_relu() {
    const std::int64_t channels = features.value.cols();
    for (std::int64_t i = 0; i < features.value.rows(); ++i) {
      for (std::int64_t c = 0; c < channels; ++c) {
        if (features.value(i, c) > 0.0) continue;
        features.value(i, c) = 0.0;
        for (std::int64_t j = c; j < relu.value.cols(); j += channels) relu.value(i, j) = 0.0;
      }
    }
  }
};

GcnPair run_random_network(const Gso& gso, std::int64_t k, const GcnProbe& probe, Random& random) {
  const std::int64_t n = gso.num_nodes();
  Matrix features = gaussian_matrix(n, probe.channels, random);
  GcnPair pair(std::move(features), gaussian_matrix(n, probe.directions * probe.channels, random));
  Matrix weight;
  for (std::int64_t layer = 0; layer < k; ++layer) {
    if (layer == 0 || probe.weights == LayerWeights::kFresh) {
      weight = gaussian_weight(probe.channels, random);
    }
    pair.apply_layer(gso, weight);
  }
  return pair;
}

Matrix checked_matrix(const char* name, std::span<const double> numbers, std::int64_t rows,
                      std::int64_t columns) {
  if (std::ssize(numbers) != rows * columns) {
    throw std::invalid_argument(fmt::format("gcn_tangents: expected {} numbers in {}, got {}",
                                            rows * columns, name, numbers.size()));
  }
  const auto is_finite = [](double number) { return std::isfinite(number); };
  if (!std::all_of(numbers.begin(), numbers.end(), is_finite)) {
    throw std::invalid_argument(fmt::format("gcn_tangents: expected finite numbers in {}", name));
  }
  return Eigen::Map<const Matrix>(numbers.data(), rows, columns);
}

std::vector<double> unscaled(const Scaled& block) {
  std::vector<double> numbers(block.value.data(), block.value.data() + block.value.size());
  for (double& number : numbers) number = std::scalbln(number, block.exponent);
  return numbers;
}

}  // namespace

std::string_view to_string(WeightKind kind) {
  switch (kind) {
    case WeightKind::kOrthogonal:
      return "orthogonal";
    case WeightKind::kGaussian:
      return "gaussian";
    case WeightKind::kRankOne:
      return "rank_one";
  }
  return "unknown";
}

double masked_ratio(WeightKind kind, std::int64_t channels, std::int64_t k, std::int64_t draws,
                    std::uint64_t seed) {
  require_at_least("masked_ratio", "channels", channels, 1);
  require_at_least("masked_ratio", "k", k, 0);
  require_at_least("masked_ratio", "draws", draws, 1);
  Random random(seed);
  std::vector<double> logs;
  for (std::int64_t done = 0; done < draws; done += kDrawsPerWeight) {
    const Matrix weight = draw_weight(kind, channels, random);
    const std::int64_t count = std::min(kDrawsPerWeight, draws - done);
    Scaled linear{gaussian_matrix(count, channels, random)};
    Scaled masked = linear;
    for (std::int64_t step = 0; step < k; ++step) {
      linear.value = linear.value * weight;
      masked.value = masked.value * weight;
      apply_random_mask(masked.value, random);
      linear.rescale();
      masked.rescale();
    }
    for (std::int64_t i = 0; i < count; ++i) {
      logs.push_back(log2_ratio(masked.value.row(i).squaredNorm(),
                                linear.value.row(i).squaredNorm(),
                                masked.exponent - linear.exponent));
    }
  }
  return std::exp2(log2_root_mean_square(logs));
}

double paper_ratio(std::int64_t k) {
  require_at_least("paper_ratio", "k", k, 0);
  return std::exp2(-0.5 * static_cast<double>(k));
}

double rank_one_ratio(std::int64_t k) {
  require_at_least("rank_one_ratio", "k", k, 0);
  return k == 0 ? 1.0 : std::exp2(0.5 - static_cast<double>(k));
}

GcnTangents gcn_tangents(const Gso& gso, std::int64_t channels, std::span<const double> weights,
                         std::span<const double> features, std::span<const double> direction) {
  require_at_least("gcn_tangents", "channels", channels, 1);
  const std::int64_t n = gso.num_nodes();
  const std::int64_t layers = std::ssize(weights) / channels / channels;
  if (std::ssize(weights) != layers * channels * channels) {
    throw std::invalid_argument(fmt::format(
        "gcn_tangents: expected whole matrices of {} channels in weights, got {} numbers", channels,
        weights.size()));
  }
  const Matrix stacked = checked_matrix("weights", weights, layers * channels, channels);
  GcnPair pair(checked_matrix("features", features, n, channels),
               checked_matrix("direction", direction, n, channels));
  if (n == 0) return {};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    pair.apply_layer(gso, stacked.middleRows(layer * channels, channels));
  }
  return {unscaled(pair.relu), unscaled(pair.linear)};
}

double gcn_log2_ratio(const Gso& gso, std::int64_t k, const GcnProbe& probe) {
  require_at_least("gcn_log2_ratio", "nodes", gso.num_nodes(), 1);
  require_at_least("gcn_log2_ratio", "k", k, 0);
  require_at_least("gcn_log2_ratio", "channels", probe.channels, 1);
  require_at_least("gcn_log2_ratio", "networks", probe.networks, 1);
  require_at_least("gcn_log2_ratio", "directions", probe.directions, 1);
  Random random(probe.seed);
  double sum = 0.0;
  for (std::int64_t network = 0; network < probe.networks; ++network) {
    const GcnPair pair = run_random_network(gso, k, probe, random);
    if (pair.linear.value.isZero(0.0)) {
      throw std::invalid_argument(fmt::format(
          "gcn_log2_ratio: expected an operator whose power {} is not zero, got zero", k));
    }
    for (std::int64_t d = 0; d < probe.directions; ++d) {
      const auto squared_norm = [&](const Scaled& tangents) {
        return tangents.value.middleCols(d * probe.channels, probe.channels).squaredNorm();
      };
      sum += log2_ratio(squared_norm(pair.relu), squared_norm(pair.linear),
                        pair.relu.exponent - pair.linear.exponent);
    }
  }
  return sum / static_cast<double>(probe.networks * probe.directions);
}

double gcn_log2_ratio_per_layer(const Gso& gso, std::int64_t k, const GcnProbe& probe) {
  require_at_least("gcn_log2_ratio_per_layer", "k", k, 1);
  return gcn_log2_ratio(gso, k, probe) / static_cast<double>(k);
}

std::vector<VanishingRow> vanishing_table(const Gso& gso, const VanishingOptions& options) {
  require_at_least("vanishing_table", "max_k", options.max_k, 1);
  const auto measure = [&](WeightKind kind, std::int64_t k) {
    return masked_ratio(kind, options.channels, k, options.draws, options.seed);
  };
  std::vector<VanishingRow> rows;
  // Doubling by comparison with half the limit cannot overflow.
  for (std::int64_t k = 1;; k *= 2) {
    rows.push_back({.k = k,
                    .paper = paper_ratio(k),
                    .orthogonal = measure(WeightKind::kOrthogonal, k),
                    .gaussian = measure(WeightKind::kGaussian, k),
                    .rank_one = measure(WeightKind::kRankOne, k),
                    .rank_one_limit = rank_one_ratio(k),
                    .gcn = std::exp2(gcn_log2_ratio(gso, k, options.gcn))});
    if (k > options.max_k / 2) return rows;
  }
}

}  // namespace mpssm::analysis
