// SPDX-License-Identifier: MIT
#include "mpssm/graph/pattern_operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mpssm/graph/breadth_first.h"
#include "mpssm/graph/csr.h"

namespace mpssm::graph {
namespace {

Gso operator_of(Csr matrix, const Gso& like) {
  return Gso::from_csr(std::move(matrix.row_ptr), std::move(matrix.col), std::move(matrix.value),
                       {like.graph_ptr().begin(), like.graph_ptr().end()});
}

}  // namespace

Gso neighbour_mean(const Gso& pattern) {
  Csr mean;
  for (std::int64_t i = 0; i < pattern.num_nodes(); ++i) {
    const std::size_t begin = mean.col.size();
    for (std::int64_t e = pattern.row_ptr()[i]; e < pattern.row_ptr()[i + 1]; ++e) {
      if (pattern.col()[e] != i) mean.push_back(pattern.col()[e], 0.0);
    }
    const double share = 1.0 / static_cast<double>(mean.col.size() - begin);
    std::fill(mean.value.begin() + static_cast<std::ptrdiff_t>(begin), mean.value.end(), share);
    mean.end_row();
  }
  return operator_of(std::move(mean), pattern);
}

std::vector<Gso> exact_distance_operators(const Gso& pattern, std::int64_t farthest) {
  std::vector<Csr> found(static_cast<std::size_t>(farthest));
  std::vector<std::int32_t> hops(static_cast<std::size_t>(pattern.num_nodes()), kUnreachable);
  std::vector<std::int32_t> order;
  for (std::int64_t i = 0; i < pattern.num_nodes(); ++i) {
    const auto senders = [&](std::int32_t node, const auto& visit) {
      if (hops[node] >= farthest) return;
      for (std::int64_t e = pattern.row_ptr()[node]; e < pattern.row_ptr()[node + 1]; ++e) {
        visit(pattern.col()[e]);
      }
    };
    breadth_first(i, senders, hops, order);
    // Nearest first as they come; each distance's own in the order of their numbers.
    std::sort(order.begin(), order.end());
    for (const std::int32_t j : order) {
      if (j != i) found[hops[j] - 1].push_back(j, 1.0);
      hops[j] = kUnreachable;
    }
    for (Csr& matrix : found) matrix.end_row();
  }
  std::vector<Gso> operators;
  for (Csr& matrix : found) {
    const auto count = [&](std::int64_t i) {
      return static_cast<double>(matrix.row_ptr[i + 1] - matrix.row_ptr[i]);
    };
    for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
      for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
        // Against the edges a node may have nobody at this distance.
        const double both = count(i) * count(matrix.col[e]);
        matrix.value[e] = both > 0.0 ? 1.0 / std::sqrt(both) : 0.0;
      }
    }
    operators.push_back(operator_of(std::move(matrix), pattern));
  }
  return operators;
}

}  // namespace mpssm::graph
