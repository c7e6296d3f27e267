// SPDX-License-Identifier: MIT
// Private to engine/: weights of the neighbours of a node, a softmax of scores from numbers at
// both.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mpssm::engine {

/// For the entries (i, j) of a row of a pattern: softmax over j of leaky(to(i) + from(j)), where
/// leaky(z) = z above zero and slope z below. An empty row has none.
template <typename T>
struct NeighbourSoftmax {
  const std::int64_t* row_ptr = nullptr;
  const std::int32_t* col = nullptr;
  const T* to = nullptr;
  const T* from = nullptr;
  std::int64_t stride = 1;  ///< from the number of a node to that of the next
  T slope = T(0.2);

  T sum(std::int64_t i, std::int64_t j) const { return to[i * stride] + from[j * stride]; }

  /// Writes weight[e] for the entries e of row i.
  void weigh(std::int64_t i, T* weight) const {
    const std::int64_t begin = row_ptr[i];
    const std::int64_t end = row_ptr[i + 1];
    // The largest is taken off, which changes nothing but keeps numbers in their range.
    T largest = -std::numeric_limits<T>::infinity();
    for (std::int64_t e = begin; e < end; ++e) {
      const T z = sum(i, col[e]);
      weight[e] = z > T{0} ? z : slope * z;
      largest = std::max(largest, weight[e]);
    }
    T total{0};
    for (std::int64_t e = begin; e < end; ++e) {
      weight[e] = std::exp(weight[e] - largest);
      total += weight[e];
    }
    for (std::int64_t e = begin; e < end; ++e) weight[e] /= total;
  }

  /// The mean of the gradients of the weights of row i, by these weights.
  T mean(std::int64_t i, const T* weight, const T* grad) const {
    T result{0};
    for (std::int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) result += weight[e] * grad[e];
    return result;
  }

  /// The gradient of to(i) + from(j), from that of the weight of the entry and the mean of row i.
  T sum_grad(std::int64_t i, std::int64_t j, T weight, T grad, T mean_grad) const {
    return weight * (grad - mean_grad) * (sum(i, j) > T{0} ? T{1} : slope);
  }
};

}  // namespace mpssm::engine
