// SPDX-License-Identifier: MIT
// A dense W as a diagonal one: the eigenvectors that change the basis of a state, and back.
#pragma once

#include <cstdint>
#include <vector>

namespace mpssm::engine {

/// W = V S V^-1. Of each conjugate pair of eigenvalues one is kept and stands for both, so that C
/// channels become M complex ones, C/2 <= M <= C: with Z(t) the state that sigma moves,
///   Z(t+1) = sigma A Z(t) + U(t+1) B enter   and   X(t) = Z(t) leave,
/// complex numbers as pairs (re, im) of columns.
struct DiagonalForm {
  std::vector<double> sigma = {};  ///< [M, 2]
  std::vector<double> enter = {};  ///< [C, 2 M]: columns of V
  std::vector<double> leave = {};  ///< [2 M, C]: rows of V^-1
  double condition = 0.0;          ///< cond(V) in the 2-norm: rounding errors grow by up to this

  std::int64_t num_pairs() const { return std::ssize(sigma) / 2; }
};

/// Of w [channels, channels], row-major. O(channels^3). A W that has no basis of eigenvectors has a
/// condition number beyond 1 / epsilon, or infinity: it is for the caller to look at it. Throws
/// std::runtime_error if the eigenvalues are not found (w has numbers that are not finite).
DiagonalForm diagonal_form(const double* w, std::int64_t channels);

}  // namespace mpssm::engine
