// SPDX-License-Identifier: MIT
// How operators put kernels on threads: tasks, balanced rows, and buffers that outlive a call.
// Internal to ops/.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include <ATen/core/Tensor.h>

#include "mpssm/graph/gso.h"
#include "mpssm/kernels/matmul.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {

/// Below this many multiply-adds a call stays on one thread: waking the others costs more.
inline constexpr std::int64_t kParallelWork = 1 << 18;

/// Runs task(i) for i in [0, count), in parallel if `work` multiply-adds in all are worth it.
/// Threads take the next task when they are done with one, so which thread runs it must not matter
/// to its result.
template <typename Task>
void run_tasks(std::int64_t count, std::int64_t work, const Task& task) {
  if (work < kParallelWork || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  run_workers([&] {
    for (std::int64_t i = next++; i < count; i = next++) task(i);
  });
}

/// Runs `body(begin, end)` over ranges of `count` numbers; one costs about 16 multiply-adds.
template <typename Body>
void for_numbers(std::int64_t count, const Body& body) {
  constexpr std::int64_t kTaskSize = 1 << 14;
  run_tasks((count + kTaskSize - 1) / kTaskSize, 16 * count, [&](std::int64_t task) {
    body(task * kTaskSize, std::min(count, (task + 1) * kTaskSize));
  });
}

/// Memory of this thread for `count` numbers, kept from call to call: fresh pages for every call
/// would cost more than some kernels. Contents are whatever was left; a second call may move it.
template <typename T>
T* thread_scratch(std::int64_t count) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Buffer {
    std::unique_ptr<void, Free> memory;
    std::size_t bytes = 0;
  };
  static thread_local Buffer buffer;
  constexpr std::size_t kAlignment = 4096;
  const std::size_t wanted =
      (static_cast<std::size_t>(count) * sizeof(T) / kAlignment + 1) * kAlignment;
  if (buffer.bytes < wanted) {
    buffer.memory.reset();
    buffer.bytes = 0;
    buffer.memory.reset(std::aligned_alloc(kAlignment, wanted));
    if (buffer.memory == nullptr) throw std::bad_alloc();
    buffer.bytes = wanted;
  }
  return static_cast<T*>(buffer.memory.get());
}

/// at::empty, with large pages for large tensors where the system leaves that to the program: a
/// training step allocates its activations anew each time, and page by page that costs as much as
/// some kernels. Defined in runtime.cpp.
at::Tensor empty_tensor(at::IntArrayRef sizes, const at::TensorOptions& options);
inline at::Tensor empty_tensor_like(const at::Tensor& x) {
  return empty_tensor(x.sizes(), x.options());
}

/// y[b] = A x[b] (+ add[b]) for tensors of shape [B, N, C] whose last two axes are contiguous; A is
/// `matrix`. Rows are shared out by work. No autograd. Defined in spmm.cpp.
template <typename T>
void spmm_into(const kernels::CsrView<T>& matrix, const at::Tensor& x, const at::Tensor& add,
               const at::Tensor& y);

/// y = x W (+ add) over the last axis of x [..., in] and y [..., out]; W is w [in, out] (kNo) or
/// the transpose of w [out, in] (kYes). add has the shape of y, or [out] for every row alike; it
/// may be y itself. All contiguous. No autograd. Defined in linear.cpp.
void matmul_into(const at::Tensor& x, const at::Tensor& w, kernels::Transpose transpose,
                 const at::Tensor& add, const at::Tensor& y);

/// The sum over the first axis, whose parts are added in order; `parts` is contiguous, float or
/// double. Torch's own sum may add in an order that depends on the threads. Defined in linear.cpp.
at::Tensor sum_of_parts(const at::Tensor& parts);

/// Rows [begin, end) of a part of a sum over `rows` rows: enough to be worth a task, few enough
/// parts to be added up quickly, and the same for any number of threads.
struct RowParts {
  explicit RowParts(std::int64_t rows_in)
      : rows(rows_in),
        size(std::max<std::int64_t>(1024, (rows + 15) / 16)),
        count((rows + size - 1) / size) {}
  std::int64_t begin(std::int64_t part) const { return part * size; }
  std::int64_t end(std::int64_t part) const { return std::min(rows, (part + 1) * size); }
  std::int64_t rows;
  std::int64_t size;
  std::int64_t count;
};

/// Runs `body` with a value of type float or double according to the tensor's dtype.
template <typename Body>
decltype(auto) with_real_type(const at::Tensor& tensor, Body&& body) {
  if (tensor.scalar_type() == at::kFloat) return body(float{});
  return body(double{});
}

}  // namespace mpssm::ops
