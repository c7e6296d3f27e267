// SPDX-License-Identifier: MIT
// Private to graph/: cutting an operator into independent parts, and what the eigenvalue
// searches do with a part.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "mpssm/graph/csr.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::graph {

/// Parts up to this size are decomposed densely: faster than any iteration, and certain.
inline constexpr std::int64_t kDenseLimit = 400;

/// Nodes sorted by the group they belong to.
struct Groups {
  Groups(std::vector<std::int32_t> group_of_node, std::int64_t num_groups)
      : of_node(std::move(group_of_node)),
        first(num_groups + 1, 0),
        node(of_node.size()),
        rank(of_node.size()) {
    for (const std::int32_t g : of_node) ++first[g + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < of_node.size(); ++i) {
      const std::int64_t slot = next[of_node[i]]++;
      node[slot] = static_cast<std::int32_t>(i);
      rank[i] = static_cast<std::int32_t>(slot - first[of_node[i]]);
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(first.size()) - 1; }

  std::vector<std::int32_t> of_node;
  std::vector<std::int64_t> first;  ///< [count + 1], into node
  std::vector<std::int32_t> node;
  std::vector<std::int32_t> rank;  ///< of each node in its group
};

/// Rows and columns of one group, stored zeros dropped. Cost: the rows of that group.
inline Csr submatrix(const kernels::CsrView<double>& matrix, const Groups& groups,
                     std::int64_t group) {
  Csr part;
  for (std::int64_t n = groups.first[group]; n < groups.first[group + 1]; ++n) {
    const std::int32_t i = groups.node[n];
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      const std::int32_t j = matrix.col[e];
      if (groups.of_node[j] == group && matrix.value[e] != 0.0) {
        part.push_back(groups.rank[j], matrix.value[e]);
      }
    }
    part.end_row();
  }
  return part;
}

/// y = A x.
inline void multiply(const Csr& matrix, const double* x, double* y) {
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    double sum = 0.0;
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      sum += matrix.value[e] * x[matrix.col[e]];
    }
    y[i] = sum;
  }
}

template <typename Matrix>
Matrix to_dense(const Csr& matrix) {
  Matrix dense = Matrix::Zero(matrix.num_rows(), matrix.num_rows());
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      dense(i, matrix.col[e]) = matrix.value[e];
    }
  }
  return dense;
}

struct Bounds {
  double lower = 0.0;
  double upper = 0.0;
};

/// Collatz-Wielandt: for x > 0 the spectral radius of |A| lies between the least and the largest
/// (|A| x)_i / x_i. Power iteration narrows that down until the two agree to `tolerance`
/// (relative). The upper bound also bounds the radius of A. Every row must have a nonzero.
inline Bounds bound_radius(const Csr& matrix, int max_iterations, double tolerance) {
  const std::int64_t n = matrix.num_rows();
  std::vector<double> x(n, 1.0);
  std::vector<double> image(n);
  Bounds best{0.0, std::numeric_limits<double>::max()};
  for (int k = 0; k < max_iterations && best.upper - best.lower > tolerance * best.upper; ++k) {
    Bounds now{std::numeric_limits<double>::infinity(), 0.0};
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = 0.0;
      for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
        sum += std::abs(matrix.value[e]) * x[matrix.col[e]];
      }
      image[i] = sum;
      now.lower = std::min(now.lower, sum / x[i]);
      now.upper = std::max(now.upper, sum / x[i]);
    }
    best.lower = std::max(best.lower, now.lower);
    best.upper = std::min(best.upper, now.upper);
    // Half a radius on the diagonal: keeps x positive and damps the modes of a periodic matrix.
    double largest = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] = image[i] + 0.5 * best.lower * x[i];
      largest = std::max(largest, x[i]);
    }
    double smallest = 1.0;
    for (double& entry : x) smallest = std::min(smallest, entry /= largest);
    if (!(smallest > 1e-280)) break;  // the ratios would lose their digits
  }
  return best;
}

}  // namespace mpssm::graph
