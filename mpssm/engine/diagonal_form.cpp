// SPDX-License-Identifier: MIT
#include "mpssm/engine/diagonal_form.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>

namespace mpssm::engine {
namespace {

using Eigen::MatrixXcd;
using Eigen::MatrixXd;

/// The largest singular value, of the same map on real and imaginary parts.
double norm_of(const MatrixXcd& complex) {
  const std::int64_t n = complex.rows();
  MatrixXd real(2 * n, 2 * n);
  real << complex.real(), -complex.imag(), complex.imag(), complex.real();
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(real.transpose() * real,
                                                       Eigen::EigenvaluesOnly);
  return std::sqrt(solver.eigenvalues()(2 * n - 1));
}

double condition_of(const MatrixXcd& vectors, const MatrixXcd& inverse) {
  return inverse.allFinite() ? norm_of(vectors) * norm_of(inverse)
                             : std::numeric_limits<double>::infinity();
}

}  // namespace

DiagonalForm diagonal_form(const double* w, std::int64_t channels) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::EigenSolver<MatrixXd> solver(Eigen::Map<const RowMajor>(w, channels, channels));
  if (solver.info() != Eigen::Success) {
    throw std::runtime_error("diagonal_form: the eigenvalues of W are not found");
  }
  const Eigen::VectorXcd values = solver.eigenvalues();
  const MatrixXcd vectors = solver.eigenvectors();
  const MatrixXcd inverse = vectors.inverse();

  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < channels; ++j) {
    if (values(j).imag() >= 0.0) kept.push_back(j);
  }
  DiagonalForm form{.condition = condition_of(vectors, inverse)};
  for (const std::int64_t j : kept) {
    form.sigma.insert(form.sigma.end(), {values(j).real(), values(j).imag()});
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    for (const std::int64_t j : kept) {
      form.enter.insert(form.enter.end(), {vectors(c, j).real(), vectors(c, j).imag()});
    }
  }
  // X = Re(Z V^-1), where one of a conjugate pair counts twice: rows Re and -Im of V^-1.
  for (const std::int64_t j : kept) {
    const double times = values(j).imag() > 0.0 ? 2.0 : 1.0;
    for (std::int64_t c = 0; c < channels; ++c) form.leave.push_back(times * inverse(j, c).real());
    for (std::int64_t c = 0; c < channels; ++c) form.leave.push_back(-times * inverse(j, c).imag());
  }
  return form;
}

}  // namespace mpssm::engine
