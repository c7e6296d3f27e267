// SPDX-License-Identifier: MIT
// Eigenbasis of small symmetric operators: dense blocks, one per graph of a batch, computed once.
#include <fmt/core.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <Eigen/Eigenvalues>

#include "mpssm/graph/gso_data.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::graph {
namespace {

using Eigen::MatrixXd;

/// Of all blocks so far.
struct Blocks {
  std::vector<double> eigenvalues;
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col;
  std::vector<double> vectors;
  std::vector<double> vectors_transposed;
};

void decompose_block(const kernels::CsrView<double>& matrix, std::int64_t begin, std::int64_t end,
                     Blocks& blocks) {
  const std::int64_t n = end - begin;
  if (n == 0) return;  // Eigen decomposes nothing smaller than 1 x 1
  MatrixXd block = MatrixXd::Zero(n, n);
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      block(i - begin, matrix.col[e] - begin) = matrix.value[e];
    }
  }
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(block);
  if (solver.info() != Eigen::Success) {
    throw std::runtime_error(
        fmt::format("eigen_basis: no convergence for the graph of nodes {} to {}", begin, end - 1));
  }
  for (std::int64_t i = 0; i < n; ++i) {
    blocks.eigenvalues.push_back(solver.eigenvalues()[i]);
    for (std::int64_t j = 0; j < n; ++j) {
      blocks.col.push_back(static_cast<std::int32_t>(begin + j));
      blocks.vectors.push_back(solver.eigenvectors()(i, j));
      blocks.vectors_transposed.push_back(solver.eigenvectors()(j, i));
    }
    blocks.row_ptr.push_back(std::ssize(blocks.col));
  }
}

std::vector<float> rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

std::unique_ptr<const EigenBasis> make_eigen_basis(const Gso& gso) {
  Blocks blocks;
  const std::int64_t nonzeros = eigen_basis_nonzeros(gso);
  blocks.eigenvalues.reserve(gso.num_nodes());
  blocks.row_ptr.reserve(gso.num_nodes() + 1);
  blocks.col.reserve(nonzeros);
  blocks.vectors.reserve(nonzeros);
  blocks.vectors_transposed.reserve(nonzeros);
  for (std::int64_t g = 0; g < gso.num_graphs(); ++g) {
    decompose_block(gso.view<double>(), gso.graph_ptr()[g], gso.graph_ptr()[g + 1], blocks);
  }
  auto basis = std::make_unique<EigenBasis>();
  basis->vectors_float = rounded(blocks.vectors);
  basis->vectors_transposed_float = rounded(blocks.vectors_transposed);
  basis->eigenvalues = std::move(blocks.eigenvalues);
  basis->row_ptr = std::move(blocks.row_ptr);
  basis->col = std::move(blocks.col);
  basis->vectors = std::move(blocks.vectors);
  basis->vectors_transposed = std::move(blocks.vectors_transposed);
  return basis;
}

}  // namespace

template <typename T>
kernels::CsrView<T> EigenBasis::view() const {
  const auto n = static_cast<std::int64_t>(eigenvalues.size());
  if constexpr (std::is_same_v<T, double>) {
    return {n, row_ptr.data(), col.data(), vectors.data()};
  } else {
    return {n, row_ptr.data(), col.data(), vectors_float.data()};
  }
}

template <typename T>
kernels::CsrView<T> EigenBasis::transpose_view() const {
  const auto n = static_cast<std::int64_t>(eigenvalues.size());
  if constexpr (std::is_same_v<T, double>) {
    return {n, row_ptr.data(), col.data(), vectors_transposed.data()};
  } else {
    return {n, row_ptr.data(), col.data(), vectors_transposed_float.data()};
  }
}

template kernels::CsrView<float> EigenBasis::view<float>() const;
template kernels::CsrView<double> EigenBasis::view<double>() const;
template kernels::CsrView<float> EigenBasis::transpose_view<float>() const;
template kernels::CsrView<double> EigenBasis::transpose_view<double>() const;

EigenCache& eigen_cache(const Gso& gso) { return gso.data_->eigen; }

const EigenBasis& eigen_basis(const Gso& gso) {
  EigenCache& cache = eigen_cache(gso);
  if (cache.is_given) return *cache.basis;
  if (!gso.is_symmetric()) {
    throw std::invalid_argument(
        fmt::format("eigen_basis: expected a symmetric operator, got a {} operator that differs "
                    "from its transpose",
                    to_string(gso.kind())));
  }
  for (std::int64_t g = 0; g < gso.num_graphs(); ++g) {
    const std::int64_t size = gso.graph_ptr()[g + 1] - gso.graph_ptr()[g];
    if (size <= kMaxEigenBlock) continue;
    throw std::invalid_argument(
        fmt::format("eigen_basis: expected graphs of at most {} nodes, got graph {} with {}",
                    kMaxEigenBlock, g, size));
  }
  std::call_once(cache.once, [&] { cache.basis = make_eigen_basis(gso); });
  return *cache.basis;
}

void give_eigen_basis(const Gso& gso, EigenBasis basis) {
  EigenCache& cache = eigen_cache(gso);
  cache.basis = std::make_unique<const EigenBasis>(std::move(basis));
  cache.is_given = true;
}

std::int64_t eigen_basis_nonzeros(const Gso& gso) {
  if (eigen_cache(gso).is_given) return std::ssize(eigen_cache(gso).basis->col);
  std::int64_t sum = 0;
  for (std::int64_t g = 0; g < gso.num_graphs(); ++g) {
    const std::int64_t size = gso.graph_ptr()[g + 1] - gso.graph_ptr()[g];
    sum += size * size;
  }
  return sum;
}

}  // namespace mpssm::graph
