// SPDX-License-Identifier: MIT
#include "mpssm/engine/attention.h"

#include <algorithm>

#include "mpssm/engine/neighbour_softmax.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/spmm.h"

namespace mpssm::engine {
namespace {

constexpr std::int64_t kRows = 256;  // of a task

/// body(begin, end) over ranges of rows.
template <typename T, typename Body>
void for_rows(const Attention<T>& args, const Executor& executor, const Body& body) {
  const std::int64_t rows = args.pattern.num_rows;
  // A score costs about as much as some 16 products.
  const std::int64_t work = args.heads * args.nonzeros() * (args.width + 16);
  run_tasks(executor, (rows + kRows - 1) / kRows, work,
            [&](std::int64_t task) { body(task * kRows, std::min(rows, (task + 1) * kRows)); });
}

/// y of one head = a x of that head.
template <typename T>
void multiply_head(const Attention<T>& args, const kernels::CsrView<T>& a, std::int64_t head,
                   const T* x, T* y, std::int64_t begin, std::int64_t end) {
  const std::int64_t stride = args.heads * args.width;
  const std::int64_t at = head * args.width;
  kernels::SpmmArgs<T> product;
  product.a = a;
  product.x = x + at;
  product.x_stride = stride;
  product.y = y + at;
  product.y_stride = stride;
  product.width = args.width;
  kernels::spmm(product, begin, end);
}

template <typename T>
NeighbourSoftmax<T> softmax_of(const Attention<T>& args, std::int64_t head) {
  return {args.pattern.row_ptr, args.pattern.col, args.to + head,
          args.from + head,     args.heads,       args.slope};
}

/// Buffers of the adjoint: where the entries of each column are, and their numbers in that order.
template <typename T>
struct AdjointBuffers {
  AdjointBuffers(const Attention<T>& args, Workspace& work)
      : begin(work.take<std::int64_t>(args.pattern.num_rows + 1)),
        row(work.take<std::int32_t>(args.nonzeros())),
        entry(work.take<std::int64_t>(args.nonzeros())),
        score(work.take<T>(args.heads * args.nonzeros())),
        weight(work.take<T>(args.heads * args.nonzeros())) {}
  std::int64_t* begin;  // [N + 1]
  std::int32_t* row;    // of the entries, column by column
  std::int64_t* entry;
  T* score;   // [heads, nonzeros] gradient, in the order of the rows
  T* weight;  // [heads, nonzeros], column by column
};

/// Entries column by column, those of a column in the order of their rows.
template <typename T>
void sort_by_column(const kernels::CsrView<T>& a, const AdjointBuffers<T>& out) {
  std::fill(out.begin, out.begin + a.num_rows + 1, 0);
  for (std::int64_t e = 0; e < a.row_ptr[a.num_rows]; ++e) ++out.begin[a.col[e] + 1];
  for (std::int64_t j = 0; j < a.num_rows; ++j) out.begin[j + 1] += out.begin[j];
  for (std::int64_t i = 0; i < a.num_rows; ++i) {
    for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
      const std::int64_t at = out.begin[a.col[e]]++;
      out.row[at] = static_cast<std::int32_t>(i);
      out.entry[at] = e;
    }
  }
  // Each begin has come to where the next one was.
  for (std::int64_t j = a.num_rows; j > 0; --j) out.begin[j] = out.begin[j - 1];
  out.begin[0] = 0;
}

}  // namespace

template <typename T>
void attend(const Attention<T>& args, T* weight, T* y, const Executor& executor) {
  for_rows(args, executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = 0; head < args.heads; ++head) {
      kernels::CsrView<T> a = args.pattern;
      T* const of_head = weight + head * args.nonzeros();
      a.value = of_head;
      const NeighbourSoftmax<T> softmax = softmax_of(args, head);
      for (std::int64_t row = begin; row < end; ++row) softmax.weigh(row, of_head);
      multiply_head(args, a, head, args.x, y, begin, end);
    }
  });
}

template <typename T>
std::int64_t attend_adjoint_bytes(const Attention<T>& args) {
  Workspace counting;
  AdjointBuffers<T>(args, counting);
  return counting.used();
}

template <typename T>
void attend_adjoint(const Attention<T>& args, const T* weight, const T* grad, T* grad_x, T* grad_to,
                    T* grad_from, Workspace work, const Executor& executor) {
  const AdjointBuffers<T> buffers(args, work);
  const std::int64_t nonzeros = args.nonzeros();
  for_rows(args, executor, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = args.pattern.row_ptr[begin];
    const std::int64_t last = args.pattern.row_ptr[end];
    for (std::int64_t head = 0; head < args.heads; ++head) {
      const T* const w = weight + head * nonzeros;
      T* const s = buffers.score + head * nonzeros;
      std::fill(s + first, s + last, T{0});
      kernels::SpmmValueGradArgs<T> dots;  // the gradient of the weights
      dots.a = args.pattern;
      dots.g = grad + head * args.width;
      dots.x = args.x + head * args.width;
      dots.g_stride = dots.x_stride = args.heads * args.width;
      dots.grad = s;
      dots.width = args.width;
      kernels::spmm_value_grad(dots, begin, end);
      const NeighbourSoftmax<T> softmax = softmax_of(args, head);
      for (std::int64_t i = begin; i < end; ++i) {
        const T mean = softmax.mean(i, w, s);
        T sum = 0;
        for (std::int64_t e = args.pattern.row_ptr[i]; e < args.pattern.row_ptr[i + 1]; ++e) {
          s[e] = softmax.sum_grad(i, args.pattern.col[e], w[e], s[e], mean);
          sum += s[e];
        }
        grad_to[i * args.heads + head] = sum;
      }
    }
  });
  sort_by_column(args.pattern, buffers);
  for_rows(args, executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = 0; head < args.heads; ++head) {
      const T* const w = weight + head * nonzeros;
      const T* const s = buffers.score + head * nonzeros;
      T* const turned = buffers.weight + head * nonzeros;
      for (std::int64_t j = begin; j < end; ++j) {
        T sum = 0;
        for (std::int64_t at = buffers.begin[j]; at < buffers.begin[j + 1]; ++at) {
          turned[at] = w[buffers.entry[at]];
          sum += s[buffers.entry[at]];
        }
        grad_from[j * args.heads + head] = sum;
      }
      const kernels::CsrView<T> transposed{args.pattern.num_rows, buffers.begin, buffers.row,
                                           turned};
      multiply_head(args, transposed, head, grad, grad_x, begin, end);
    }
  });
}

#define MPSSM_INSTANTIATE(T)                                                                      \
  template void attend<T>(const Attention<T>&, T*, T*, const Executor&);                          \
  template std::int64_t attend_adjoint_bytes<T>(const Attention<T>&);                             \
  template void attend_adjoint<T>(const Attention<T>&, const T*, const T*, T*, T*, T*, Workspace, \
                                  const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
