// SPDX-License-Identifier: MIT
#include "mpssm/nn/orthogonal.h"

#include <cmath>

#include <ATen/ATen.h>

namespace mpssm::nn {
namespace {

/// Four sums side by side: one alone would wait for each addition.
double dot(const double* a, const double* b, std::int64_t n) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::int64_t lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Gram-Schmidt on the rows of a [n, n]. Twice, because one pass leaves rows of an ill-conditioned
/// matrix as far from orthogonal as its condition says, and two leave nothing but rounding.
void orthonormalise_rows(double* a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    double* row = a + i * n;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < i; ++j) {
        const double* other = a + j * n;
        const double share = dot(row, other, n);
        for (std::int64_t k = 0; k < n; ++k) row[k] -= share * other[k];
      }
    }
    const double norm = std::sqrt(dot(row, row, n));
    for (std::int64_t k = 0; k < n; ++k) row[k] /= norm;
  }
}

}  // namespace

void fill_orthogonal(at::Tensor& weight, double scale) {
  TORCH_CHECK_VALUE(weight.dim() == 2 && weight.size(0) == weight.size(1),
                    "fill_orthogonal: expected a square matrix, got ", weight.sizes());
  const at::NoGradGuard no_grad;
  const at::Tensor normal = at::randn(weight.sizes(), at::kFloat);
  // The rows of the transpose are M's columns.
  at::Tensor rows = normal.t().to(at::kDouble).contiguous();
  orthonormalise_rows(rows.data_ptr<double>(), rows.size(0));
  weight.copy_(rows.t().mul(scale));
}

}  // namespace mpssm::nn
