// SPDX-License-Identifier: MIT
// Random arguments and a way to compare results.
#pragma once

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/gso.h"

namespace mpssm::testing {

/// Sums of some hundred terms in another order: 1e-10 and 1e-4 leave three digits to spare.
inline double relative_tolerance(torch::Dtype type) {
  return type == torch::kDouble ? 1e-10 : 1e-4;
}

/// Largest difference over the largest expected number.
inline double relative_error(const torch::Tensor& actual, const torch::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (expected.numel() == 0) return 0.0;
  const double size = expected.abs().max().item<double>();
  return (actual - expected).abs().max().item<double>() / std::max(size, 1e-30);
}

inline ::testing::AssertionResult close(const torch::Tensor& actual, const torch::Tensor& expected,
                                        double tolerance) {
  const double error = relative_error(actual, expected);
  if (error <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "shapes " << actual.sizes() << " and " << expected.sizes()
                                       << ", relative error " << error << " > " << tolerance;
}

/// Dense W whose powers neither grow nor vanish.
inline torch::Tensor random_dense_w(std::int64_t channels, torch::Dtype type) {
  const auto q = std::get<0>(torch::linalg_qr(torch::randn({channels, channels}, torch::kDouble)));
  return (0.98 * q).to(type);
}

/// Complex sigma [channels] with moduli in [0.5, 1].
inline torch::Tensor random_sigma(std::int64_t channels, torch::Dtype type) {
  const auto modulus = 0.5 + 0.5 * torch::rand({channels}, torch::kDouble);
  const auto sigma = torch::polar(modulus, 3.14 * torch::rand({channels}, torch::kDouble));
  return sigma.to(type == torch::kDouble ? torch::kComplexDouble : torch::kComplexFloat);
}

/// W as the matrix that acts on the C real channels: itself if dense; of a diagonal W, each sigma
/// turns and scales a pair of channels.
inline torch::Tensor real_state_matrix(const torch::Tensor& w) {
  if (!w.is_complex()) return w.to(torch::kDouble);
  auto matrix = torch::zeros({2 * w.size(0), 2 * w.size(0)}, torch::kDouble);
  for (std::int64_t p = 0; p < w.size(0); ++p) {
    const double re = torch::real(w[p]).item<double>();
    const double im = torch::imag(w[p]).item<double>();
    matrix[2 * p][2 * p] = matrix[2 * p + 1][2 * p + 1] = re;
    matrix[2 * p][2 * p + 1] = im;
    matrix[2 * p + 1][2 * p] = -im;
  }
  return matrix;
}

/// The operator as a matrix.
inline torch::Tensor to_dense(const graph::Gso& gso) {
  auto matrix = torch::zeros({gso.num_nodes(), gso.num_nodes()}, torch::kDouble);
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      matrix[i][gso.col()[e]] = gso.values<double>()[e];
    }
  }
  return matrix;
}

}  // namespace mpssm::testing
