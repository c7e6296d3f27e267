// SPDX-License-Identifier: MIT
// An operator of low rank, A = P Q': the nodes of a graph hear each other by way of a few virtual
// ones. Neither A nor any power of it is ever written out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mpssm/graph/gso.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::graph {

/// Immutable and cheap to copy. Each graph of a batch has `rank` virtual nodes of its own, which
/// hear its nodes by Q' and are heard by P. With M = Q' P, the operator among the virtual nodes,
/// A^i = P M^(i-1) Q'.
class LowRankOperator {
 public:
  /// None.
  LowRankOperator() = default;
  /// P and Q: [N, rank], row-major; `graph_ptr` as in Graph. Throws std::invalid_argument unless
  /// sizes fit and numbers are finite.
  LowRankOperator(GsoKind kind, std::int64_t rank, std::span<const double> p,
                  std::span<const double> q, std::vector<std::int64_t> graph_ptr);

  /// The same with other factors, P and then Q: [2, N, rank]. Learned ones may leave the range.
  LowRankOperator with_factors(std::span<const double> factors) const;

  bool is_none() const { return data_ == nullptr; }
  GsoKind kind() const;
  std::int64_t rank() const;
  std::int64_t num_nodes() const;
  std::int64_t num_graphs() const;
  std::span<const std::int64_t> graph_ptr() const;
  /// P and then Q: [2, N, rank].
  std::int64_t num_factors() const { return 2 * num_nodes() * rank(); }
  std::span<const double> p() const;
  std::span<const double> q() const;

  /// M, on the virtual nodes of all graphs.
  const Gso& among_virtual() const;
  /// The factors as sparse matrices [N, virtual nodes], T = float or double.
  template <typename T>
  kernels::CsrView<T> p_view() const;
  template <typename T>
  kernels::CsrView<T> q_view() const;
  /// Their transposes in pieces: what virtual node v hears is the sum of rows [piece_ptr[v],
  /// piece_ptr[v + 1]), each over no more than some thousand nodes.
  template <typename T>
  kernels::CsrView<T> p_pieces() const;
  template <typename T>
  kernels::CsrView<T> q_pieces() const;
  std::span<const std::int64_t> piece_ptr() const;

 private:
  struct Values;
  struct Pattern;
  struct Data;
  explicit LowRankOperator(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

/// A(i, j) = 1 / n for the n nodes of a graph: one virtual node hears all of them and tells each
/// the mean. A^i = A.
LowRankOperator virtual_node(std::span<const std::int64_t> graph_ptr);

/// Of some graphs of a batch, see select_graphs() of a Gso.
LowRankOperator select_graphs(const LowRankOperator& batch, std::span<const std::int64_t> graphs);

}  // namespace mpssm::graph
