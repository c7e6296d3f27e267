// SPDX-License-Identifier: MIT
// Spectrum of a graph shift operator: extremes of large ones, full eigenbasis of small ones.
#pragma once

#include <cstdint>

#include "mpssm/graph/gso.h"
#include "mpssm/graph/kept_array.h"

namespace mpssm::graph {

/// Extreme eigenvalues of a symmetric operator.
struct SpectrumExtremes {
  double largest = 0.0;
  double smallest = 0.0;
  double radius = 0.0;       ///< max |lambda|
  double lambda_star = 0.0;  ///< max |lambda| once one copy of the largest is set aside
  bool converged = false;    ///< false: the values are the best approximations found
};

/// By full decomposition for small connected parts; else by Lanczos on products with the operator
/// (Spectra), or with a sparse inverse where a long thin graph leaves no gap between eigenvalues.
/// Converged: residuals are within `tolerance` times the norm. Cost: some hundreds of sparse
/// products at the default tolerance. Throws std::invalid_argument if the operator is not
/// symmetric.
SpectrumExtremes spectrum_extremes(const Gso& gso, double tolerance = 1e-10);

/// |lambda| max of any square operator, symmetric or not (power iteration and Arnoldi on its
/// strongly connected parts). Where these do not settle, the best approximation found.
double spectral_radius(const Gso& gso, double tolerance = 1e-10);

/// A = P diag(eigenvalues) P' with P orthogonal, block by block for a batch of graphs. P and P' are
/// held as CSR matrices with dense blocks and one shared pattern, so that a change of basis is a
/// sparse product.
struct EigenBasis {
  KeptArray<double> eigenvalues;  ///< [N], ascending inside each block
  KeptArray<std::int64_t> row_ptr;
  KeptArray<std::int32_t> col;
  KeptArray<double> vectors;             ///< P: row = node, column = mode
  KeptArray<double> vectors_transposed;  ///< P': row = mode, column = node
  KeptArray<float> vectors_float;
  KeptArray<float> vectors_transposed_float;

  template <typename T>
  kernels::CsrView<T> view() const;  ///< P
  template <typename T>
  kernels::CsrView<T> transpose_view() const;  ///< P'
};

/// Largest part of a batch that eigen_basis() accepts; its cost is cubic in that size.
inline constexpr std::int64_t kMaxEigenBlock = 4096;

/// Computed at the first call and kept in the operator (thread-safe). Throws std::invalid_argument
/// if the operator is not symmetric or a part has more than kMaxEigenBlock nodes.
const EigenBasis& eigen_basis(const Gso& gso);

/// Gives a borrowed operator (Gso::borrow) the basis that was computed for its owner, before
/// anybody else sees it. Vectors of a precision that nobody asks for may be missing.
void give_eigen_basis(const Gso& gso, EigenBasis basis);

/// Nonzeros of the eigenbasis, sum over parts of n_g^2: what one change of basis costs per channel.
std::int64_t eigen_basis_nonzeros(const Gso& gso);

}  // namespace mpssm::graph
