// SPDX-License-Identifier: MIT
// Dense matrices for tests: what sparse code is compared with, written for plainness.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "mpssm/graph/graph.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::graph::testing {

using Dense = std::vector<std::vector<double>>;

inline Dense zeros(std::int64_t n) { return Dense(n, std::vector<double>(n, 0.0)); }

template <typename T>
Dense to_dense(const kernels::CsrView<T>& matrix) {
  Dense dense = zeros(matrix.num_rows);
  for (std::int64_t i = 0; i < matrix.num_rows; ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      dense[i][matrix.col[e]] += matrix.value[e];
    }
  }
  return dense;
}

inline Dense to_dense(const Graph& graph) {
  return to_dense(kernels::CsrView<double>{graph.num_nodes(), graph.row_ptr().data(),
                                           graph.col().data(), graph.weight().data()});
}

inline Dense transposed(const Dense& a) {
  Dense result = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) result[i][j] = a[j][i];
  }
  return result;
}

template <typename T>
std::vector<double> multiply(const kernels::CsrView<T>& matrix, const std::vector<double>& x) {
  std::vector<double> y(matrix.num_rows, 0.0);
  for (std::int64_t i = 0; i < matrix.num_rows; ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      y[i] += matrix.value[e] * x[matrix.col[e]];
    }
  }
  return y;
}

inline double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// In [-1, 1).
inline std::vector<double> random_vector(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> x(n);
  for (double& entry : x) entry = static_cast<double>(engine() >> 11) * 0x1.0p-52 - 1.0;
  return x;
}

/// Random edges with repeats and self-loops; weights are small whole numbers, so that sums are
/// exact in any order.
inline EdgeList random_edges(std::int64_t num_nodes, std::int64_t num_edges, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  EdgeList edges;
  edges.num_nodes = num_nodes;
  for (std::int64_t e = 0; e < num_edges; ++e) {
    edges.src.push_back(static_cast<std::int64_t>(engine() % num_nodes));
    edges.dst.push_back(static_cast<std::int64_t>(engine() % num_nodes));
    edges.weight.push_back(1.0 + static_cast<double>(engine() % 5));
  }
  return edges;
}

}  // namespace mpssm::graph::testing
