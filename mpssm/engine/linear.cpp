// SPDX-License-Identifier: MIT
#include "mpssm/engine/linear.h"

#include <algorithm>
#include <type_traits>

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/matmul_bf16.h"

namespace mpssm::engine {
namespace {

constexpr std::int64_t kRowsPerTask = 192;
// Rows of the transposed product that are packed at a time: with a few hundred channels they stay
// in the second-level cache.
constexpr std::int64_t kPackedRows = 96;

/// A block of rows with x in T or rounded.
template <typename Block, typename T>
Block block_of(const MatmulBatch<T>& args, std::int64_t b) {
  Block block;
  block.inner = args.inner;
  block.columns = args.columns;
  if (args.add != nullptr) block.add = args.add + b * args.add_stride;
  block.add_is_bias = args.add_is_bias;
  block.y = args.y + b * args.y_stride;
  block.y_layout = {args.columns, 0};
  return block;
}

void multiply_rounded(const MatmulBatch<float>& args, std::int64_t b, std::int64_t begin,
                      std::int64_t end, std::int64_t worker) {
  const std::int64_t inner = kernels::padded_inner(args.inner);
  kernels::Bf16* const rounded = args.rounded + worker * kRowsPerTask * inner;
  kernels::round_rows(args.x + b * args.x_stride + begin * args.inner, end - begin, args.inner,
                      rounded);
  auto block = block_of<kernels::Bf16MatmulArgs<float>>(args, b);
  block.inner = inner;
  block.x = rounded;
  block.x_layout = {inner, 0};
  block.packed = args.packed_bf16;
  block.y += begin * args.columns;
  if (block.add != nullptr && !args.add_is_bias) block.add += begin * args.columns;
  kernels::matmul(block, 0, end - begin);
}

}  // namespace

template <typename T>
void matmul(const MatmulBatch<T>& args, const Executor& executor) {
  const std::int64_t tasks = (args.rows + kRowsPerTask - 1) / kRowsPerTask;
  const std::int64_t work = args.batch * args.rows * args.inner * args.columns / 8;
  run_tasks(executor, args.batch * tasks, work, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t b = task / tasks;
    const std::int64_t begin = task % tasks * kRowsPerTask;
    const std::int64_t end = std::min(args.rows, begin + kRowsPerTask);
    if constexpr (std::is_same_v<T, float>) {
      if (args.packed_bf16 != nullptr) return multiply_rounded(args, b, begin, end, worker);
    }
    auto block = block_of<kernels::MatmulArgs<T>>(args, b);
    block.x = args.x + b * args.x_stride;
    block.x_layout = {args.inner, 0};
    block.packed = args.packed;
    kernels::matmul(block, begin, end);
  });
}

std::int64_t rounded_size(std::int64_t inner, std::int64_t workers) {
  return workers * kRowsPerTask * kernels::padded_inner(inner);
}

std::int64_t matmul_scratch(std::int64_t inner, std::int64_t columns, Precision precision,
                            std::int64_t workers) {
  if (precision == Precision::kFloat32) return kernels::packed_size(inner, columns);
  return (kernels::packed_size_bf16(inner, columns) + rounded_size(inner, workers) + 1) / 2;
}

template <typename T>
void matmul(MatmulBatch<T> args, Transpose transpose, const T* w, T* scratch,
            const Executor& executor, Precision precision) {
  if constexpr (std::is_same_v<T, float>) {
    if (precision == Precision::kBf16) {
      auto* const packed = reinterpret_cast<kernels::Bf16*>(scratch);
      kernels::pack_matrix(transpose, w, args.inner, args.columns, packed);
      args.packed_bf16 = packed;
      args.rounded = packed + kernels::packed_size_bf16(args.inner, args.columns);
      return matmul(args, executor);
    }
  }
  kernels::pack_matrix(transpose, w, args.inner, args.columns, scratch);
  args.packed = scratch;
  matmul(args, executor);
}

std::int64_t transposed_matmul_scratch(std::int64_t rows, std::int64_t left, std::int64_t right,
                                       std::int64_t workers) {
  const std::int64_t padded_left = round_up(left, kernels::kPanelColumns);
  const std::int64_t padded_right = round_up(right, kernels::kPanelColumns);
  return (RowParts(rows).count + 1) * padded_left * padded_right +
         workers * kPackedRows * (padded_left + padded_right);
}

template <typename T>
void transposed_matmul(const T* x, const T* g, std::int64_t rows, std::int64_t left_columns,
                       std::int64_t right_columns, T* out, T* scratch, const Executor& executor,
                       Precision precision, RowPlace place) {
  const RowParts parts(rows, place.all);
  const std::int64_t left = round_up(left_columns, kernels::kPanelColumns);
  const std::int64_t right = round_up(right_columns, kernels::kPanelColumns);
  T* const sums = scratch;
  T* const total = sums + parts.count * left * right;
  T* const packed_of_workers = total + left * right;
  std::fill(sums, total, T{0});
  run_tasks(
      executor, parts.count, rows * left * right / 8, [&](std::int64_t part, std::int64_t worker) {
        T* const packed = packed_of_workers + worker * kPackedRows * (left + right);
        T* const sum = sums + part * left * right;
        for (std::int64_t row = parts.begin(part); row < parts.end(part); row += kPackedRows) {
          const std::int64_t count = std::min(kPackedRows, parts.end(part) - row);
          const T* const x_rows = x + row * left_columns;
          const T* const g_rows = g + row * right_columns;
          if constexpr (std::is_same_v<T, float>) {
            if (precision == Precision::kBf16) {
              kernels::add_transposed(x_rows, left_columns, g_rows, right_columns, count, sum,
                                      reinterpret_cast<kernels::Bf16*>(packed));
              continue;
            }
          }
          kernels::add_transposed(x_rows, left_columns, g_rows, right_columns, count, sum, packed);
        }
      });
  const bool is_one = parts.count == 1;
  if (!is_one) sum_of_parts(sums, parts.count, left * right, total, executor);
  const T* from = is_one ? sums : total;
  for (std::int64_t i = 0; i < left_columns; ++i) {
    std::copy(from + i * right, from + i * right + right_columns, out + i * right_columns);
  }
}

std::int64_t column_sums_scratch(std::int64_t rows, std::int64_t columns) {
  return RowParts(rows).count * columns;
}

template <typename T>
void column_sums(const T* g, std::int64_t rows, std::int64_t columns, T* out, T* scratch,
                 const Executor& executor, RowPlace place) {
  const RowParts parts(rows, place.all);
  std::fill(scratch, scratch + parts.count * columns, T{0});
  run_tasks(executor, parts.count, rows * columns, [&](std::int64_t part) {
    const std::int64_t begin = parts.begin(part);
    kernels::add_rows(g + begin * columns, parts.end(part) - begin, columns,
                      scratch + part * columns);
  });
  sum_of_parts(scratch, parts.count, columns, out, executor);
}

#define MPSSM_INSTANTIATE(T)                                                                       \
  template void matmul<T>(const MatmulBatch<T>&, const Executor&);                                 \
  template void matmul<T>(MatmulBatch<T>, Transpose, const T*, T*, const Executor&, Precision);    \
  template void transposed_matmul<T>(const T*, const T*, std::int64_t, std::int64_t, std::int64_t, \
                                     T*, T*, const Executor&, Precision, RowPlace);                \
  template void column_sums<T>(const T*, std::int64_t, std::int64_t, T*, T*, const Executor&,      \
                               RowPlace);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
