// SPDX-License-Identifier: MIT
// Sparse times dense on all workers: one hop of message passing for a batch of node features.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::engine {

/// y[b] = A x[b] (+ add[b]) for b in [0, batch): blocks [N, width], row-major, `*_stride` numbers
/// apart. y must not overlap x; it may be add.
template <typename T>
struct SpmmBatch {
  kernels::CsrView<T> a;
  std::int64_t batch = 1;
  std::int64_t width = 0;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  const T* add = nullptr;  // optional
  std::int64_t add_stride = 0;
  T* y = nullptr;
  std::int64_t y_stride = 0;
  T* scratch = nullptr;  // optional: [spmm_scratch()]
};

/// Numbers of scratch that make a product faster: where rows have many entries, slices of x that
/// fit the cache are packed one after the other. 0 if that would gain nothing. Same bits either
/// way.
template <typename T>
std::int64_t spmm_scratch(const SpmmBatch<T>& args);

/// Rows are shared out by their number of entries.
template <typename T>
void spmm(const SpmmBatch<T>& args, const Executor& executor);

/// y = A x for one block [N, width].
template <typename T>
void spmm(const kernels::CsrView<T>& a, const T* x, std::int64_t width, T* y,
          const Executor& executor);

}  // namespace mpssm::engine
