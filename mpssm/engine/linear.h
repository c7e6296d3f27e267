// SPDX-License-Identifier: MIT
// Dense products of many rows with small matrices, and the sums over rows that their gradients are.
// Each number is summed in one order, whatever the workers.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/precision.h"
#include "mpssm/engine/row_place.h"
#include "mpssm/kernels/bf16.h"
#include "mpssm/kernels/matmul.h"

namespace mpssm::engine {

using kernels::Transpose;

/// y[b] = x[b] W (+ add[b]) for b in [0, batch): x[b] [rows, inner], y[b] and add[b] [rows,
/// columns], row-major, blocks `*_stride` numbers apart.
template <typename T>
struct MatmulBatch {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  const T* packed = nullptr;  // W, by pack_matrix()
  /// float only: W in bfloat16 in its place, and rounded_size() numbers of scratch.
  const kernels::Bf16* packed_bf16 = nullptr;
  kernels::Bf16* rounded = nullptr;
  const T* add = nullptr;  // optional: like y (or y itself), or with `add_is_bias` one row for all
  std::int64_t add_stride = 0;
  bool add_is_bias = false;
  T* y = nullptr;
  std::int64_t y_stride = 0;
};
template <typename T>
void matmul(const MatmulBatch<T>& args, const Executor& executor);

/// Scratch of a product in bfloat16: rows of x, rounded by each worker.
std::int64_t rounded_size(std::int64_t inner, std::int64_t workers);

/// y = x W: packs W [inner, columns] (kNo) or the transpose of w [columns, inner] (kYes) into
/// `scratch`, which has room for matmul_scratch() numbers, and multiplies. The rest as in
/// MatmulBatch. kBf16 is for float.
template <typename T>
void matmul(MatmulBatch<T> args, Transpose transpose, const T* w, T* scratch,
            const Executor& executor, Precision precision = Precision::kFloat32);

/// kBf16 needs the workers, too.
std::int64_t matmul_scratch(std::int64_t inner, std::int64_t columns,
                            Precision precision = Precision::kFloat32, std::int64_t workers = 1);

/// out [left, right] = x' g for x [rows, left], g [rows, right], row-major. The sum over rows is
/// cut into parts by the number of all rows (`place`), and the parts are added in order. kBf16 is
/// for float.
template <typename T>
void transposed_matmul(const T* x, const T* g, std::int64_t rows, std::int64_t left,
                       std::int64_t right, T* out, T* scratch, const Executor& executor,
                       Precision precision = Precision::kFloat32, RowPlace place = {});
std::int64_t transposed_matmul_scratch(std::int64_t rows, std::int64_t left, std::int64_t right,
                                       std::int64_t workers);

/// out [columns] = the sum over the rows of g [rows, columns], part by part.
template <typename T>
void column_sums(const T* g, std::int64_t rows, std::int64_t columns, T* out, T* scratch,
                 const Executor& executor, RowPlace place = {});
std::int64_t column_sums_scratch(std::int64_t rows, std::int64_t columns);

}  // namespace mpssm::engine
