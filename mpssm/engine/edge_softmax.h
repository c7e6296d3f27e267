// SPDX-License-Identifier: MIT
// Entries of an operator from numbers at its nodes: attention, as in GAT.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"
#include "mpssm/graph/gso.h"

namespace mpssm::engine {

/// For every entry (i, j) of the pattern, in its order: the softmax over row i of
/// leaky(target[i] + source[j]), where leaky(z) = z above zero and slope z below. An empty row has
/// none. T is float or double.
template <typename T>
struct EdgeSoftmax {
  graph::Gso gso;             ///< its values are not read
  const T* target = nullptr;  ///< [N]
  const T* source = nullptr;  ///< [N]
  T slope = T(0.2);
};
template <typename T>
void edge_softmax(const EdgeSoftmax<T>& args, T* entries, const Executor& executor);

/// The gradients of `target` and `source` [N], written whole, from that of the entries. `scratch`
/// has room for N numbers. Sums are in the order of a row, and of a column: the same bits for any
/// number of workers.
template <typename T>
void edge_softmax_adjoint(const EdgeSoftmax<T>& args, const T* entries, const T* grad,
                          T* grad_target, T* grad_source, T* scratch, const Executor& executor);

}  // namespace mpssm::engine
