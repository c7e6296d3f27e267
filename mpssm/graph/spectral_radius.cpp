// SPDX-License-Identifier: MIT
// Spectral radius of any square operator: the largest over its strongly connected parts.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include <Eigen/Eigenvalues>
// GCC 12 sees a use after free in Eigen's resize where Spectra calls it; there is none.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuse-after-free"
#endif
#include <Spectra/GenEigsSolver.h>

#include "mpssm/graph/spectrum.h"
#include "mpssm/graph/submatrix.h"

namespace mpssm::graph {
namespace {

// Tarjan's algorithm without recursion. The eigenvalues of a matrix are those of its strongly
// connected parts; on the parts, unlike on the whole, a nilpotent operator is plainly zero.
Groups strong_parts(const kernels::CsrView<double>& matrix) {
  constexpr std::int32_t kNone = -1;
  const std::int64_t n = matrix.num_rows;
  std::vector<std::int32_t> visited_at(n, kNone);
  std::vector<std::int32_t> low(n, 0);
  std::vector<std::int32_t> part_of(n, kNone);
  std::vector<std::int64_t> next(matrix.row_ptr, matrix.row_ptr + n);
  std::vector<std::int32_t> path;
  std::vector<std::int32_t> open;  // visited, part not known yet
  std::int32_t clock = 0;
  std::int32_t count = 0;
  const auto enter = [&](std::int32_t node) {
    visited_at[node] = low[node] = clock++;
    path.push_back(node);
    open.push_back(node);
  };
  for (std::int64_t start = 0; start < n; ++start) {
    if (visited_at[start] != kNone) continue;
    enter(static_cast<std::int32_t>(start));
    while (!path.empty()) {
      const std::int32_t i = path.back();
      if (next[i] < matrix.row_ptr[i + 1]) {
        const std::int64_t e = next[i]++;
        const std::int32_t j = matrix.col[e];
        if (matrix.value[e] == 0.0) continue;
        if (visited_at[j] == kNone) {
          enter(j);
        } else if (part_of[j] == kNone) {
          low[i] = std::min(low[i], visited_at[j]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[i]);
      if (low[i] != visited_at[i]) continue;
      for (std::int32_t member = kNone; member != i;) {
        member = open.back();
        open.pop_back();
        part_of[member] = count;
      }
      ++count;
    }
  }
  return Groups(std::move(part_of), count);
}

double dense_radius(const Csr& part) {
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(to_dense<Eigen::MatrixXd>(part),
                                                   /*computeEigenvectors=*/false);
  return solver.eigenvalues().cwiseAbs().maxCoeff();
}

// x -> (A + shift I) x
class Product {
 public:
  using Scalar = double;
  Product(const Csr& matrix, double shift) : matrix_(matrix), shift_(shift) {}
  Eigen::Index rows() const { return matrix_.num_rows(); }
  Eigen::Index cols() const { return matrix_.num_rows(); }
  void perform_op(const double* x, double* y) const {
    multiply(matrix_, x, y);
    for (Eigen::Index i = 0; i < rows(); ++i) y[i] += shift_ * x[i];
  }

 private:
  const Csr& matrix_;
  double shift_;
};

class Arnoldi : public Spectra::GenEigsSolver<Product> {
 public:
  using GenEigsSolver::GenEigsSolver;
  double best_radius() const { return std::abs(m_ritz_val[0]); }  // converged or not
};

double large_radius(const Csr& part, double tolerance) {
  constexpr std::int64_t kDenseFallback = 1500;
  constexpr int kMaxRestarts = 100;
  const bool is_positive =
      std::all_of(part.value.begin(), part.value.end(), [](double value) { return value > 0.0; });
  const Bounds bounds = bound_radius(part, is_positive ? 300 : 20, tolerance);
  if (is_positive && bounds.upper - bounds.lower <= tolerance * bounds.upper) {
    return 0.5 * (bounds.lower + bounds.upper);
  }
  // A positive part has its radius as eigenvalue; the shift sets it apart from others as large.
  const double shift = is_positive ? 0.5 * bounds.lower : 0.0;
  Product product(part, shift);
  Arnoldi solver(product, 1, 60);
  solver.init();
  const bool converged =
      solver.compute(Spectra::SortRule::LargestMagn, kMaxRestarts, tolerance) > 0;
  if (!converged && part.num_rows() <= kDenseFallback) return dense_radius(part);
  const double lower = is_positive ? bounds.lower : 0.0;
  return std::clamp(solver.best_radius() - shift, lower, bounds.upper);
}

}  // namespace

double spectral_radius(const Gso& gso, double tolerance) {
  if (gso.is_symmetric()) return spectrum_extremes(gso, tolerance).radius;
  const Groups parts = strong_parts(gso.view<double>());
  double radius = 0.0;
  for (std::int64_t p = 0; p < parts.count(); ++p) {
    const Csr part = submatrix(gso.view<double>(), parts, p);
    if (part.num_rows() == 1) {
      if (!part.value.empty()) radius = std::max(radius, std::abs(part.value[0]));
    } else if (part.num_rows() <= kDenseLimit) {
      radius = std::max(radius, dense_radius(part));
    } else {
      radius = std::max(radius, large_radius(part, tolerance));
    }
  }
  return radius;
}

}  // namespace mpssm::graph
