// SPDX-License-Identifier: MIT
#include "mpssm/graph/laplacian_modes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>

#include "mpssm/base/random.h"
#include "mpssm/graph/csr.h"
#include "mpssm/graph/factor_work.h"
#include "mpssm/graph/submatrix.h"

namespace mpssm::graph {
namespace {

/// Rows are nodes, so that a sparse product reads whole rows.
using Block = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kSmallPart = 64;  // beyond, the iteration is quicker than all eigenpairs
constexpr int kMostRounds = 300;
constexpr double kResidual = 1e-7;

/// S = D^-1/2 M D^-1/2 of one part; `root` is the square root of D, of norm 1: its eigenvector.
struct Normalised {
  Csr matrix;
  Eigen::VectorXd root;
};

Normalised normalised(const Graph& graph, const std::vector<std::int32_t>& nodes) {
  std::unordered_map<std::int32_t, std::int32_t> place;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    place.emplace(nodes[i], static_cast<std::int32_t>(i));
  }
  Csr in;
  for (const std::int32_t node : nodes) {
    for (std::int64_t e = graph.row_ptr()[node]; e < graph.row_ptr()[node + 1]; ++e) {
      if (graph.col()[e] == node) continue;
      in.push_back(place.at(graph.col()[e]), std::abs(graph.weight()[e]));
    }
    in.end_row();
  }
  const Csr back = transpose(in);
  const Csr out = transpose(back);  // rows sorted, whatever the order of the nodes
  Normalised result;
  const std::int64_t n = std::ssize(nodes);
  Eigen::VectorXd degree = Eigen::VectorXd::Zero(n);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t a = out.row_ptr[i];
    std::int64_t b = back.row_ptr[i];
    while (a < out.row_ptr[i + 1] || b < back.row_ptr[i + 1]) {
      constexpr auto kEnd = std::numeric_limits<std::int32_t>::max();
      const std::int32_t of_a = a < out.row_ptr[i + 1] ? out.col[a] : kEnd;
      const std::int32_t of_b = b < back.row_ptr[i + 1] ? back.col[b] : kEnd;
      const std::int32_t column = std::min(of_a, of_b);
      double sum = 0.0;
      if (of_a == column) sum += out.value[a++];
      if (of_b == column) sum += back.value[b++];
      result.matrix.push_back(column, 0.5 * sum);
      degree[i] += 0.5 * sum;
    }
    result.matrix.end_row();
  }
  result.root = degree.cwiseSqrt();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t e = result.matrix.row_ptr[i]; e < result.matrix.row_ptr[i + 1]; ++e) {
      const double scale = result.root[i] * result.root[result.matrix.col[e]];
      if (scale > 0.0) result.matrix.value[e] /= scale;
    }
  }
  result.root.normalize();
  return result;
}

/// y = alpha S x + beta y.
void product(const Csr& matrix, const Block& x, double alpha, double beta, Block& y) {
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    y.row(i) *= beta;
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      y.row(i) += alpha * matrix.value[e] * x.row(matrix.col[e]);
    }
  }
}

class Search {
 public:
  Search(const Normalised& part, std::int64_t count)
      : part_(part),
        n_(part.matrix.num_rows()),
        count_(count),
        width_(std::min(n_ - 1, 2 * count + 4)) {
    base::Random random(1);
    x_ = Block(n_, width_);
    for (Eigen::Index i = 0; i < x_.size(); ++i) x_.data()[i] = random.unit() - 0.5;
    const double work = factor_work(shifted(1.0));
    constexpr double kMaxWork = 1e9;
    if (work > kMaxWork) return;
    // Far below the second eigenvalue, which is of the order of 1 / n^2 on the longest graphs.
    for (double sigma = 0.1 / (static_cast<double>(n_) * static_cast<double>(n_));
         !can_solve_ && sigma < 1.0; sigma *= 100.0) {
      factor_.compute(shifted(1.0 + std::max(sigma, 1e-13)));
      can_solve_ = factor_.info() == Eigen::Success;
    }
  }

  void run(LaplacianModes& modes) {
    ritz();
    for (int round = 0; round < kMostRounds; ++round) {
      if (can_solve_) {
        x_ = factor_.solve(x_);
      } else {
        filter();
      }
      ritz();
      if (residual() < kResidual) break;
    }
    for (std::int64_t k = 0; k < count_; ++k) modes.eigenvalues[k] = 1.0 - values_[k];
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t k = 0; k < count_; ++k) modes.vectors[i * count_ + k] = x_(i, k);
    }
  }

 private:
  Eigen::SparseMatrix<double> shifted(double diagonal) const {
    std::vector<Eigen::Triplet<double>> entries;
    entries.reserve(part_.matrix.col.size() + n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      entries.emplace_back(i, i, diagonal);
      for (std::int64_t e = part_.matrix.row_ptr[i]; e < part_.matrix.row_ptr[i + 1]; ++e) {
        entries.emplace_back(i, part_.matrix.col[e], -part_.matrix.value[e]);
      }
    }
    Eigen::SparseMatrix<double> result(n_, n_);
    result.setFromTriplets(entries.begin(), entries.end());
    return result;
  }

  void drop_trivial() { x_ -= part_.root * (part_.root.transpose() * x_); }

  /// The best approximations in the span of x_, the largest of S first.
  void ritz() {
    drop_trivial();
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(x_);
    x_ = qr.householderQ() * Eigen::MatrixXd::Identity(n_, width_);
    drop_trivial();
    image_ = Block::Zero(n_, width_);
    product(part_.matrix, x_, 1.0, 0.0, image_);
    Eigen::MatrixXd small = x_.transpose() * image_;
    small = 0.5 * (small + small.transpose()).eval();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(small);
    const Eigen::MatrixXd turn = solver.eigenvectors().rowwise().reverse();
    values_ = solver.eigenvalues().reverse();
    x_ = (x_ * turn).eval();
    image_ = (image_ * turn).eval();
  }

  double residual() const {
    double worst = 0.0;
    for (std::int64_t k = 0; k < count_; ++k) {
      worst = std::max(worst, (image_.col(k) - values_[k] * x_.col(k)).norm());
    }
    return worst;
  }

  /// Chebyshev polynomial of S: at most 1 on [-1, the least value kept], quickly growing above it.
  void filter() {
    constexpr int kDegree = 24;
    const double end = std::clamp(values_[width_ - 1], -0.9, 1.0 - 1e-9);
    const double centre = 0.5 * (end - 1.0);
    const double half = 0.5 * (end + 1.0);
    Block before = x_;
    Block now = image_;
    now = ((now - centre * x_) / half).eval();
    for (int degree = 2; degree <= kDegree; ++degree) {
      // T(d + 1) = 2 (S - centre) / half T(d) - T(d - 1)
      product(part_.matrix, now, 2.0 / half, -1.0, before);
      before -= (2.0 * centre / half) * now;
      std::swap(before, now);
    }
    x_ = now;
  }

  const Normalised& part_;
  std::int64_t n_;
  std::int64_t count_;
  std::int64_t width_;
  Block x_;
  Block image_;  // S x_
  Eigen::VectorXd values_;
  Eigen::SimplicialLLT<Eigen::SparseMatrix<double>> factor_;
  bool can_solve_ = false;
};

/// Of a vector and its negative the one whose first large entry is above zero.
void fix_signs(std::int64_t nodes, std::int64_t count, std::vector<double>& vectors) {
  constexpr double kLarge = 0.5;
  for (std::int64_t k = 0; k < count; ++k) {
    double largest = 0.0;
    for (std::int64_t i = 0; i < nodes; ++i) {
      largest = std::max(largest, std::abs(vectors[i * count + k]));
    }
    double sign = 1.0;
    for (std::int64_t i = 0; i < nodes; ++i) {
      if (std::abs(vectors[i * count + k]) <= kLarge * largest) continue;
      sign = vectors[i * count + k] < 0.0 ? -1.0 : 1.0;
      break;
    }
    for (std::int64_t i = 0; i < nodes; ++i) vectors[i * count + k] *= sign;
  }
}

}  // namespace

LaplacianModes laplacian_modes(const Graph& graph, const std::vector<std::int32_t>& nodes,
                               std::int64_t count) {
  const std::int64_t n = std::ssize(nodes);
  LaplacianModes modes;
  modes.eigenvalues.assign(static_cast<std::size_t>(count), 0.0);
  modes.vectors.assign(static_cast<std::size_t>(n * count), 0.0);
  if (n < 2) return modes;
  const Normalised part = normalised(graph, nodes);
  if (n <= kSmallPart || 4 * count >= n) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
        to_dense<Eigen::MatrixXd>(part.matrix));
    for (std::int64_t k = 0; k < std::min(count, n - 1); ++k) {
      modes.eigenvalues[k] = 1.0 - solver.eigenvalues()[n - 2 - k];
      for (std::int64_t i = 0; i < n; ++i) {
        modes.vectors[i * count + k] = solver.eigenvectors()(i, n - 2 - k);
      }
    }
  } else {
    Search(part, count).run(modes);
  }
  fix_signs(n, count, modes.vectors);
  return modes;
}

std::vector<std::vector<std::int32_t>> nodes_of_parts(const Components& parts) {
  std::vector<std::vector<std::int32_t>> nodes(static_cast<std::size_t>(parts.count));
  for (std::size_t i = 0; i < parts.of_node.size(); ++i) {
    nodes[parts.of_node[i]].push_back(static_cast<std::int32_t>(i));
  }
  return nodes;
}

}  // namespace mpssm::graph
