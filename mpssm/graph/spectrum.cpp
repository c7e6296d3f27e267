// SPDX-License-Identifier: MIT
// Extreme eigenvalues of symmetric operators, one connected part at a time.
#include "mpssm/graph/spectrum.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <Eigen/Eigenvalues>
#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <Spectra/SymEigsSolver.h>
#include <Spectra/Util/SimpleRandom.h>

#include "mpssm/graph/breadth_first.h"
#include "mpssm/graph/factor_work.h"
#include "mpssm/graph/submatrix.h"

namespace mpssm::graph {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using SparseMatrix = Eigen::SparseMatrix<double>;
using Factor = Eigen::SimplicialLLT<SparseMatrix>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x -> (2 I + scale A) x with scale = +-1 / norm: all eigenvalues lie in [1, 3]. Spectra's limits
// are absolute, so operators must be of size one; its tolerances are relative to an eigenvalue, so
// that none may be near zero; and it starts from an image, which would hide a null space.
class ShiftedProduct {
 public:
  ShiftedProduct(const Csr& matrix, double scale) : matrix_(matrix), scale_(scale) {}
  Eigen::Index rows() const { return matrix_.num_rows(); }
  void perform_op(const double* x, double* y) const {
    multiply(matrix_, x, y);
    for (Eigen::Index i = 0; i < rows(); ++i) y[i] = 2.0 * x[i] + scale_ * y[i];
  }

 private:
  const Csr& matrix_;
  double scale_;
};

// x -> scale M^-1 x for the positive definite M behind the factor.
class Inverse {
 public:
  Inverse(const Factor& factor, double scale) : factor_(factor), scale_(scale) {}
  Eigen::Index rows() const { return factor_.rows(); }
  void perform_op(const double* x, double* y) const {
    Eigen::Map<VectorXd>(y, rows()) = scale_ * factor_.solve(Eigen::Map<const VectorXd>(x, rows()));
  }

 private:
  const Factor& factor_;
  double scale_;
};

// A positive operator without the direction v (null: all of it): P op P with P = I - v v'. Lanczos
// from one vector cannot see that an eigenvalue is repeated; the other copies survive deflation.
template <typename Op>
class Deflated {
 public:
  using Scalar = double;
  Deflated(const Op& op, const VectorXd* v) : op_(op), v_(v) {}
  Eigen::Index rows() const { return op_.rows(); }
  Eigen::Index cols() const { return op_.rows(); }
  void perform_op(const double* x, double* y) const {
    if (v_ == nullptr) return op_.perform_op(x, y);
    VectorXd projected = Eigen::Map<const VectorXd>(x, rows());
    projected -= v_->dot(projected) * *v_;
    op_.perform_op(projected.data(), y);
    Eigen::Map<VectorXd> result(y, rows());
    result -= v_->dot(result) * *v_;
  }

 private:
  const Op& op_;
  const VectorXd* v_;
};

// Spectra hands out converged pairs only; we also want its best guess.
template <typename Op>
class Lanczos : public Spectra::SymEigsSolver<Op> {
 public:
  using Spectra::SymEigsSolver<Op>::SymEigsSolver;
  VectorXd best_vector() const {
    const Eigen::SelfAdjointEigenSolver<MatrixXd> small(this->m_fac.matrix_H());
    return (this->m_fac.matrix_V() * small.eigenvectors().rightCols<1>()).normalized();
  }
};

struct EigenPair {
  double value = 0.0;
  VectorXd vector;
  bool converged = false;
};

// Extreme eigenpairs of one connected part that is too large to decompose.
class PartSearch {
 public:
  PartSearch(const Csr& matrix, double tolerance)
      : matrix_(matrix),
        norm_(bound_radius(matrix, /*max_iterations=*/20, /*tolerance=*/0.01).upper),
        tolerance_(std::max(tolerance, 1e-13)),
        basis_size_(matrix.num_rows() > 50'000 ? 24 : 48) {}

  // Largest eigenvalue of sign * A, or the next one if the largest pair is given as `above`.
  // Lanczos serves graphs with a gap. Long thin ones (paths, trees, roads) have none, but factor
  // almost without fill, and the inverse has the gap. What is left gets a long Lanczos.
  EigenPair largest(double sign, const EigenPair* above) {
    // Two copies of an eigenvalue need two starts: one start has but one direction among them.
    const VectorXd start =
        Spectra::SimpleRandom<double>(above == nullptr ? 1 : 2).random_vec(matrix_.num_rows());
    EigenPair pair = by_products(sign, above, start, kShortRestarts);
    if (!pair.converged && can_factor()) by_inverse(sign, above, start, pair);
    if (!pair.converged) {
      pair = by_products(sign, above, mix(pair.vector, start), long_restarts());
    }
    return pair;
  }

 private:
  static constexpr int kShortRestarts = 8;

  int long_restarts() const {
    constexpr double kWork = 3e9;  // multiply-adds
    const double work_per_restart =
        0.5 * static_cast<double>(basis_size_) *
        static_cast<double>(std::ssize(matrix_.col) + 2 * basis_size_ * matrix_.num_rows());
    return static_cast<int>(std::clamp(kWork / work_per_restart, 10.0, 3000.0));
  }

  // A guess that is almost an eigenvector spans nothing but rounding errors; some noise helps.
  static VectorXd mix(const VectorXd& guess, const VectorXd& noise) {
    return guess + 0.01 * noise.normalized();
  }

  template <typename Op>
  VectorXd run_lanczos(Op& op, const VectorXd& start, double tolerance, int restarts) const {
    Lanczos<Op> solver(op, 1, basis_size_);
    solver.init(start.data());
    solver.compute(Spectra::SortRule::LargestAlge, restarts, tolerance);
    return solver.best_vector();
  }

  // Judged by A itself, whichever operator the vector came from.
  EigenPair judge(double sign, VectorXd vector) const {
    VectorXd image(vector.size());
    multiply(matrix_, vector.data(), image.data());
    const double value = sign * vector.dot(image);
    const double residual = (sign * image - value * vector).norm();
    return {value, std::move(vector), residual <= tolerance_ * norm_};
  }

  EigenPair by_products(double sign, const EigenPair* above, const VectorXd& start,
                        int restarts) const {
    const ShiftedProduct product(matrix_, sign / norm_);
    Deflated op(product, above == nullptr ? nullptr : &above->vector);
    // Relative to a value up to 3, and with room for the residual of the pair above.
    return judge(sign, run_lanczos(op, start, tolerance_ / 12.0, restarts));
  }

  bool can_factor() {
    constexpr std::int64_t kMaxNonzeros = 4'000'000;  // beyond, even ordering takes too long
    constexpr double kMaxWork = 1e9;
    if (std::ssize(matrix_.col) > kMaxNonzeros) return false;
    if (!factor_work_) factor_work_ = factor_work(shifted(1.0, 0.0));
    return *factor_work_ <= kMaxWork;
  }

  SparseMatrix shifted(double sign, double sigma) const {
    std::vector<Eigen::Triplet<double>> entries;
    entries.reserve(matrix_.col.size() + matrix_.num_rows());
    for (std::int64_t i = 0; i < matrix_.num_rows(); ++i) {
      entries.emplace_back(i, i, sigma);
      for (std::int64_t e = matrix_.row_ptr[i]; e < matrix_.row_ptr[i + 1]; ++e) {
        entries.emplace_back(i, matrix_.col[e], -sign * matrix_.value[e]);
      }
    }
    SparseMatrix result(matrix_.num_rows(), matrix_.num_rows());
    result.setFromTriplets(entries.begin(), entries.end());
    return result;
  }

  // Factors sigma I - sign A with sigma a little above `value`, and returns sigma (NaN: failed).
  // If that is not positive definite, the largest eigenvalue is still above sigma.
  double factor_above(double sign, double value, Factor& factor) const {
    for (double distance = 1e-8; distance < 10.0; distance *= 100.0) {
      const double sigma = value + distance * norm_;
      factor.compute(shifted(sign, sigma));
      if (factor.info() == Eigen::Success) return sigma;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  void by_inverse(double sign, const EigenPair* above, const VectorXd& noise,
                  EigenPair& pair) const {
    // Relative to the inverse; what it leaves of distant eigenvectors, two more products remove.
    constexpr double kTolerance = 1e-8;
    Factor factor;
    for (int round = 0; round < 3 && !pair.converged; ++round) {
      const double top = above == nullptr ? pair.value : std::max(pair.value, above->value);
      const double sigma = factor_above(sign, top, factor);
      if (std::isnan(sigma)) return;
      const Inverse inverse(factor, sigma - pair.value);
      Deflated op(inverse, above == nullptr ? nullptr : &above->vector);
      VectorXd vector = run_lanczos(op, mix(pair.vector, noise), kTolerance, kShortRestarts);
      VectorXd image(vector.size());
      for (int k = 0; k < 2; ++k) {
        op.perform_op(vector.data(), image.data());
        vector = image.normalized();
      }
      EigenPair found = judge(sign, std::move(vector));
      if (found.converged || found.value > pair.value) pair = std::move(found);
    }
  }

  const Csr& matrix_;
  double norm_;
  double tolerance_;
  Eigen::Index basis_size_;
  std::optional<double> factor_work_;
};

// `second` is the largest once one copy of `largest` is set aside.
struct PartExtremes {
  double largest = 0.0;
  double second = -kInfinity;
  double smallest = 0.0;
  bool converged = true;
};

PartExtremes part_extremes(const Csr& part, double tolerance) {
  const std::int64_t n = part.num_rows();
  if (n == 1) {
    const double value = part.value.empty() ? 0.0 : part.value[0];
    return {.largest = value, .smallest = value};
  }
  if (n <= kDenseLimit) {
    const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(to_dense<MatrixXd>(part),
                                                         Eigen::EigenvaluesOnly);
    const VectorXd& values = solver.eigenvalues();  // ascending
    return {values[n - 1], values[n - 2], values[0], solver.info() == Eigen::Success};
  }
  PartSearch search(part, tolerance);
  const EigenPair top = search.largest(1.0, nullptr);
  const EigenPair second = search.largest(1.0, &top);
  const EigenPair bottom = search.largest(-1.0, nullptr);
  // Unconverged values may come out in the wrong order.
  return {std::max(top.value, second.value), std::min(top.value, second.value), -bottom.value,
          top.converged && second.converged && bottom.converged};
}

// Connected parts of the nonzero pattern: finer than the graphs of a batch.
Groups connected_parts(const kernels::CsrView<double>& matrix) {
  const auto neighbours = [&](std::int32_t i, const auto& visit) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      if (matrix.value[e] != 0.0) visit(matrix.col[e]);
    }
  };
  std::vector<std::int32_t> part_of(matrix.num_rows);
  std::vector<std::int32_t> hops(matrix.num_rows, kUnreachable);
  std::vector<std::int32_t> part;
  std::int32_t count = 0;
  for (std::int64_t start = 0; start < matrix.num_rows; ++start) {
    if (hops[start] != kUnreachable) continue;
    breadth_first(start, neighbours, hops, part);
    for (const std::int32_t node : part) part_of[node] = count;
    ++count;
  }
  return Groups(std::move(part_of), count);
}

}  // namespace

SpectrumExtremes spectrum_extremes(const Gso& gso, double tolerance) {
  if (!gso.is_symmetric()) {
    throw std::invalid_argument(
        fmt::format("spectrum_extremes: expected a symmetric operator, got a {} operator that "
                    "differs from its transpose",
                    to_string(gso.kind())));
  }
  if (gso.num_nodes() == 0) return {.converged = true};
  const Groups parts = connected_parts(gso.view<double>());
  double largest = -kInfinity;
  double second = -kInfinity;
  double smallest = kInfinity;
  bool converged = true;
  for (std::int64_t p = 0; p < parts.count(); ++p) {
    const PartExtremes part = part_extremes(submatrix(gso.view<double>(), parts, p), tolerance);
    second = std::max({second, part.second, std::min(largest, part.largest)});
    largest = std::max(largest, part.largest);
    smallest = std::min(smallest, part.smallest);
    converged = converged && part.converged;
  }
  return {
      .largest = largest,
      .smallest = smallest,
      .radius = std::max(std::abs(largest), std::abs(smallest)),
      .lambda_star = gso.num_nodes() == 1 ? 0.0 : std::max(std::abs(second), std::abs(smallest)),
      .converged = converged};
}

}  // namespace mpssm::graph
