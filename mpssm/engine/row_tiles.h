// SPDX-License-Identifier: MIT
// Products, norms and sums over rows in tiles that stay in cache: what fused layers are made of.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "mpssm/engine/feed_forward.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/layer_norm.h"
#include "mpssm/kernels/matmul.h"
#include "mpssm/kernels/matmul_bf16.h"

namespace mpssm::engine {

/// Rows that go through everything at once: with a few hundred channels their buffers share the
/// second-level cache.
inline constexpr std::int64_t kTileRows = 96;

/// Of a sum over the rows of a call.
template <typename Args>
RowParts parts_of(const Args& args) {
  return RowParts(args.rows, args.place.all);
}

/// The right factor of x W for W [inner, columns] (kNo) or W' of [columns, inner] (kYes).
template <typename T>
struct PackedMatrix {
  std::int64_t inner;
  std::int64_t columns;
  bool is_bf16;
  T* packed;
  kernels::Bf16* packed_bf16;
  kernels::Bf16* rounded;  // [workers][kTileRows][padded inner]

  PackedMatrix(std::int64_t inner_in, std::int64_t columns_in, Precision precision,
               std::int64_t workers, Workspace& workspace)
      : inner(inner_in),
        columns(columns_in),
        is_bf16(precision == Precision::kBf16),
        packed(workspace.take<T>(is_bf16 ? 0 : kernels::packed_size(inner, columns))),
        packed_bf16(
            workspace.take<kernels::Bf16>(is_bf16 ? kernels::packed_size_bf16(inner, columns) : 0)),
        rounded(workspace.take<kernels::Bf16>(
            is_bf16 ? workers * kTileRows * kernels::padded_inner(inner) : 0)) {}

  void pack(kernels::Transpose transpose, const T* w) const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_bf16) return kernels::pack_matrix(transpose, w, inner, columns, packed_bf16);
    }
    kernels::pack_matrix(transpose, w, inner, columns, packed);
  }
  /// y = x W + bias for `rows` rows.
  void multiply(const T* x, std::int64_t rows, const T* bias, T* y, std::int64_t worker) const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_bf16) {
        kernels::Bf16MatmulArgs<float> args;
        args.inner = kernels::padded_inner(inner);
        kernels::Bf16* const x_rounded = rounded + worker * kTileRows * args.inner;
        kernels::round_rows(x, rows, inner, x_rounded);
        args.x = x_rounded;
        args.packed = packed_bf16;
        return multiply_with(args, rows, bias, y);
      }
    }
    kernels::MatmulArgs<T> args;
    args.inner = inner;
    args.x = x;
    args.packed = packed;
    multiply_with(args, rows, bias, y);
  }

 private:
  template <typename Args>
  void multiply_with(Args& args, std::int64_t rows, const T* bias, T* y) const {
    args.columns = columns;
    args.x_layout = {args.inner, 0};
    args.add = bias;
    args.add_is_bias = true;
    args.y = y;
    args.y_layout = {columns, 0};
    kernels::matmul(args, 0, rows);
  }
};

/// The gradient of a weight, left' right summed over rows: one sum for each part of the rows.
template <typename T>
struct WeightSums {
  std::int64_t left;
  std::int64_t right;
  std::int64_t padded_left;
  std::int64_t padded_right;
  std::int64_t parts;
  bool is_bf16;
  T* sums;    // [parts][padded_left][padded_right]
  T* total;   // [padded_left][padded_right]
  T* packed;  // [workers][kTileRows][padded_left + padded_right], of bfloat16 half of it

  WeightSums(const RowParts& parts_in, std::int64_t left_in, std::int64_t right_in,
             Precision precision, std::int64_t workers, Workspace& workspace)
      : left(left_in),
        right(right_in),
        padded_left(round_up(left, kernels::kPanelColumns)),
        padded_right(round_up(right, kernels::kPanelColumns)),
        parts(parts_in.count),
        is_bf16(precision == Precision::kBf16),
        sums(workspace.take<T>(parts * padded_left * padded_right)),
        total(workspace.take<T>(padded_left * padded_right)),
        packed(workspace.take<T>(workers * kTileRows * (padded_left + padded_right))) {}

  void clear(std::int64_t part) const {
    T* const sum = sums + part * padded_left * padded_right;
    std::fill(sum, sum + padded_left * padded_right, T{0});
  }
  void add(const T* x, const T* g, std::int64_t rows, std::int64_t part,
           std::int64_t worker) const {
    T* const scratch = packed + worker * kTileRows * (padded_left + padded_right);
    T* const sum = sums + part * padded_left * padded_right;
    if constexpr (std::is_same_v<T, float>) {
      if (is_bf16) {
        auto* const pairs = reinterpret_cast<kernels::Bf16*>(scratch);
        return kernels::add_transposed(x, left, g, right, rows, sum, pairs);
      }
    }
    kernels::add_transposed(x, left, g, right, rows, sum, scratch);
  }
  void finish(T* out, const Executor& executor) const {
    if (parts > 1) sum_of_parts(sums, parts, padded_left * padded_right, total, executor);
    const T* const from = parts > 1 ? total : sums;
    for (std::int64_t i = 0; i < left; ++i) {
      std::copy_n(from + i * padded_right, right, out + i * right);
    }
  }
};

/// A vector summed over rows: gradients of biases, scales and shifts.
template <typename T>
struct VectorSums {
  std::int64_t width;
  std::int64_t parts;
  T* sums;  // [parts][width]

  VectorSums(const RowParts& parts_in, std::int64_t width_in, Workspace& workspace)
      : width(width_in), parts(parts_in.count), sums(workspace.take<T>(parts * width)) {}

  T* of(std::int64_t part) const { return sums + part * width; }
  void clear(std::int64_t part) const { std::fill(of(part), of(part) + width, T{0}); }
  void add(const T* g, std::int64_t rows, std::int64_t part) const {
    kernels::add_rows(g, rows, width, of(part));
  }
  void finish(T* out, const Executor& executor) const {
    sum_of_parts(sums, parts, width, out, executor);
  }
};

/// Rows of one array for every worker.
template <typename T>
struct Tile {
  std::int64_t width;
  T* rows;

  Tile(std::int64_t width_in, std::int64_t workers, Workspace& workspace)
      : width(width_in), rows(workspace.take<T>(workers * kTileRows * width)) {}
  T* of(std::int64_t worker) const { return rows + worker * kTileRows * width; }
};

/// A tile's way through a norm and back. Mean and deviation are made again on the way back: the
/// rows have to be read anyway.
template <typename T>
struct NormTiles {
  RowNorm<T> norm;
  std::int64_t width;  // 0: no norm
  Tile<T> normal, grad, mean, inverse;

  NormTiles(const RowNorm<T>& norm_in, std::int64_t width_in, std::int64_t workers,
            Workspace& workspace)
      : norm(norm_in),
        width(norm ? width_in : 0),
        normal(width, workers, workspace),
        grad(width, workers, workspace),
        mean(norm ? 1 : 0, workers, workspace),
        inverse(norm ? 1 : 0, workers, workspace) {}

  kernels::LayerNormArgs<T> args(const T* x, std::int64_t worker) const {
    return {width, norm.epsilon, x, norm.scale, mean.of(worker), inverse.of(worker)};
  }
  /// norm(x) of `count` rows, or x itself if there is no norm.
  const T* forward(const T* x, std::int64_t count, std::int64_t worker) const {
    if (!norm) return x;
    kernels::layer_norm(args(x, worker), norm.shift, normal.of(worker), 0, count);
    return normal.of(worker);
  }
  /// The gradient of x from that of norm(x), which lies in grad.of(worker), after forward().
  void backward(const T* x, std::int64_t count, std::int64_t worker, T* grad_x, T* scale_sum,
                T* shift_sum) const {
    T* const sink = grad_x == nullptr ? normal.of(worker) : grad_x;
    kernels::layer_norm_adjoint(args(x, worker), grad.of(worker), sink, scale_sum, shift_sum, 0,
                                count);
  }
};

/// What is kept of a tile of x in bfloat16, and the way back.
template <typename T>
struct KeptRows {
  kernels::Bf16* kept;  // null: x itself is
  Tile<T> tile;

  KeptRows(kernels::Bf16* kept_in, Precision precision, std::int64_t width, std::int64_t workers,
           Workspace& workspace)
      : kept(kept_in), tile(precision == Precision::kBf16 ? width : 0, workers, workspace) {}

  /// Rows [row, row + count) of x, after norm.forward() if there is a norm.
  void keep(const T* x, const NormTiles<T>& norm, std::int64_t row, std::int64_t count,
            std::int64_t worker) const {
    if constexpr (std::is_same_v<T, float>) {
      if (kept == nullptr) return;
      const std::int64_t width = tile.width;
      const T* from = x + row * width;
      if (norm.norm) {
        T* const centred = tile.of(worker);
        const T* const mean = norm.mean.of(worker);
        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t j = 0; j < width; ++j) {
            centred[i * width + j] = from[i * width + j] - mean[i];
          }
        }
        from = centred;
      }
      kernels::round_numbers(from, count * width, kept + row * width);
    }
  }
  /// What there is of rows [row, row + count) of x, `width` numbers each.
  const T* rows(const T* x, std::int64_t width, std::int64_t row, std::int64_t count,
                std::int64_t worker) const {
    if constexpr (std::is_same_v<T, float>) {
      if (kept != nullptr) {
        kernels::expand_numbers(kept + row * width, count * width, tile.of(worker));
        return tile.of(worker);
      }
    }
    return x + row * width;
  }
};

/// Runs body(part, worker, row, count) over tiles of rows; those of a part in order, by one worker.
template <typename Body>
void for_tiles(const RowParts& parts, std::int64_t work, const Executor& executor,
               const Body& body) {
  run_tasks(executor, parts.count, work, [&](std::int64_t part, std::int64_t worker) {
    for (std::int64_t row = parts.begin(part); row < parts.end(part); row += kTileRows) {
      body(part, worker, row, std::min(kTileRows, parts.end(part) - row));
    }
  });
}

}  // namespace mpssm::engine
