// SPDX-License-Identifier: MIT
// Attention along the entries of an operator: a mean over the neighbours of a node whose weights
// are a softmax of scores. Same numbers for any number of workers.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/workspace.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::engine {

/// For each head h and node i, over the entries (i, j) of the pattern:
///   score(i, j) = leaky_relu(to(i, h) + from(j, h)),  weight = softmax of them over j,
///   y(i, h, :) = sum_j weight(i, j) x(j, h, :).
/// A node without entries gets zeros.
template <typename T>
struct Attention {
  kernels::CsrView<T> pattern = {};  // its values are not read
  std::int64_t heads = 1;
  std::int64_t width = 1;  // of a head
  T slope = T(0.2);        // of the leaky ReLU below zero
  const T* x = nullptr;    // [N, heads, width]
  const T* to = nullptr;   // [N, heads]
  const T* from = nullptr;

  std::int64_t nonzeros() const { return pattern.row_ptr[pattern.num_rows]; }
};

/// weight [heads, nonzeros] is kept for the adjoint; y [N, heads, width].
template <typename T>
void attend(const Attention<T>& args, T* weight, T* y, const Executor& executor);

/// From the gradient of y those of x, to and from; `work` has attend_adjoint_bytes().
template <typename T>
void attend_adjoint(const Attention<T>& args, const T* weight, const T* grad, T* grad_x, T* grad_to,
                    T* grad_from, Workspace work, const Executor& executor);
template <typename T>
std::int64_t attend_adjoint_bytes(const Attention<T>& args);

}  // namespace mpssm::engine
