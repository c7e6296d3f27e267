// SPDX-License-Identifier: MIT
// Private to graph/: what a sparse factorisation would cost, told before it is made.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>

namespace mpssm::graph {

/// Multiply-adds of a sparse Cholesky factorisation in Eigen's order, counted column by column
/// along the elimination tree; infinite as soon as it is plain that the factor is too large to
/// hold.
inline double factor_work(const Eigen::SparseMatrix<double>& matrix) {
  constexpr std::int64_t kMaxFill = 20'000'000;
  using Permutation = Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int>;
  Permutation order;
  Eigen::AMDOrdering<int>()(matrix, order);
  Eigen::SparseMatrix<double> ordered;
  ordered = matrix.twistedBy(Permutation(order.inverse()));
  const Eigen::Index n = matrix.cols();
  std::vector<Eigen::Index> parent(n, -1);
  std::vector<Eigen::Index> seen_from(n, -1);
  std::vector<double> column_size(n, 1.0);
  std::int64_t fill = 0;
  for (Eigen::Index k = 0; k < n; ++k) {
    seen_from[k] = k;
    for (Eigen::SparseMatrix<double>::InnerIterator entry(ordered, k); entry && entry.row() < k;
         ++entry) {
      for (Eigen::Index i = entry.row(); seen_from[i] != k; i = parent[i]) {
        if (parent[i] < 0) parent[i] = k;
        seen_from[i] = k;
        column_size[i] += 1.0;
        if (++fill > kMaxFill) return std::numeric_limits<double>::infinity();
      }
    }
  }
  double work = 0.0;
  for (const double size : column_size) work += size * size;
  return work;
}

}  // namespace mpssm::graph
