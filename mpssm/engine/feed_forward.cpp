// SPDX-License-Identifier: MIT
#include "mpssm/engine/feed_forward.h"

#include <algorithm>
#include <type_traits>

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/dropout.h"
#include "mpssm/kernels/layer_norm.h"
#include "mpssm/kernels/matmul.h"
#include "mpssm/kernels/matmul_bf16.h"

namespace mpssm::engine {
namespace {

using kernels::Transpose;

/// Rows that go through everything at once: with a few hundred channels their buffers share the
/// second-level cache.
constexpr std::int64_t kTileRows = 96;

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

  void pack(Transpose transpose, const T* w) const {
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

  WeightSums(std::int64_t rows, std::int64_t left_in, std::int64_t right_in, Precision precision,
             std::int64_t workers, Workspace& workspace)
      : left(left_in),
        right(right_in),
        padded_left(round_up(left, kernels::kPanelColumns)),
        padded_right(round_up(right, kernels::kPanelColumns)),
        parts(RowParts(rows).count),
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
    T* const x_packed = packed + worker * kTileRows * (padded_left + padded_right);
    T* const sum = sums + part * padded_left * padded_right;
    if constexpr (std::is_same_v<T, float>) {
      if (is_bf16) {
        auto* const x_pairs = reinterpret_cast<kernels::Bf16*>(x_packed);
        kernels::Bf16* const g_pairs = x_pairs + kTileRows * padded_left;
        kernels::pack_row_pairs(x, rows, left, x_pairs);
        kernels::pack_row_pairs(g, rows, right, g_pairs);
        return kernels::matmul_transposed({padded_left, padded_right, rows, x_pairs, g_pairs, sum});
      }
    }
    T* const g_packed = x_packed + kTileRows * padded_left;
    kernels::pack_rows(x, rows, left, x_packed);
    kernels::pack_rows(g, rows, right, g_packed);
    kernels::MatmulTransposedArgs<T> args;
    args.left = padded_left;
    args.right = padded_right;
    args.x = x_packed;
    args.x_layout = {kernels::kPanelColumns, rows * kernels::kPanelColumns};
    args.g = g_packed;
    args.g_layout = {kernels::kPanelColumns, rows * kernels::kPanelColumns};
    args.sum = sum;
    kernels::matmul_transposed(args, 0, rows);
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

  VectorSums(std::int64_t rows, std::int64_t width_in, Workspace& workspace)
      : width(width_in), parts(RowParts(rows).count), sums(workspace.take<T>(parts * width)) {}

  T* of(std::int64_t part) const { return sums + part * width; }
  void clear(std::int64_t part) const { std::fill(of(part), of(part) + width, T{0}); }
  void add(const T* g, std::int64_t rows, std::int64_t part) const {
    T* const sum = of(part);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < width; ++j) sum[j] += g[row * width + j];
    }
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

template <typename T>
void drop(const Drop& how, T* numbers, std::int64_t first, std::int64_t count) {
  if (how.probability == 0.0) return;
  kernels::dropout(numbers, numbers, count, static_cast<std::uint64_t>(first), how.seed,
                   how.probability);
}

/// Runs body(part, worker, row, count) over tiles of rows; those of a part in order, by one worker.
template <typename Body>
void for_tiles(std::int64_t rows, std::int64_t work, const Executor& executor, const Body& body) {
  const RowParts parts(rows);
  run_tasks(executor, parts.count, work, [&](std::int64_t part, std::int64_t worker) {
    for (std::int64_t row = parts.begin(part); row < parts.end(part); row += kTileRows) {
      body(part, worker, row, std::min(kTileRows, parts.end(part) - row));
    }
  });
}

template <typename Buffers, typename Args>
std::int64_t bytes(const Args& args, std::int64_t workers) {
  Workspace counter;
  (void)Buffers(args, workers, counter);
  return counter.used();
}

// ---- norm(x) W --------------------------------------------------------------------------------

template <typename T>
struct NormLinearForward {
  PackedMatrix<T> w;
  NormTiles<T> norm;
  KeptRows<T> x;

  NormLinearForward(const NormLinear<T>& args, std::int64_t workers, Workspace& workspace)
      : w(args.in, args.out, args.precision, workers, workspace),
        norm(args.norm, args.in, workers, workspace),
        x(args.kept_x, args.precision, args.in, workers, workspace) {}
};

template <typename T>
struct NormLinearBackward {
  PackedMatrix<T> w_back;
  WeightSums<T> w;
  VectorSums<T> scale, shift;
  NormTiles<T> norm;
  KeptRows<T> x;

  NormLinearBackward(const NormLinear<T>& args, std::int64_t workers, Workspace& workspace)
      : w_back(args.out, args.in, args.precision, workers, workspace),
        w(args.rows, args.in, args.out, args.precision, workers, workspace),
        scale(args.rows, args.norm ? args.in : 0, workspace),
        shift(args.rows, args.norm ? args.in : 0, workspace),
        norm(args.norm, args.in, workers, workspace),
        x(args.kept_x, args.precision, args.in, workers, workspace) {}
};

// ---- feed-forward -----------------------------------------------------------------------------

template <typename T>
struct FeedForwardForward {
  PackedMatrix<T> w1, w2;
  NormTiles<T> norm;
  KeptRows<T> x;
  Tile<T> hidden;

  FeedForwardForward(const FeedForward<T>& args, std::int64_t workers, Workspace& workspace)
      : w1(args.in, args.hidden, args.precision, workers, workspace),
        w2(args.hidden, args.out, args.precision, workers, workspace),
        norm(args.norm, args.in, workers, workspace),
        x(args.kept_x, args.precision, args.in, workers, workspace),
        hidden(args.hidden, workers, workspace) {}
};

template <typename T>
struct FeedForwardBackward {
  PackedMatrix<T> w1_back, w2_back;
  WeightSums<T> w1, w2;
  VectorSums<T> b1, b2, scale, shift;
  NormTiles<T> norm;
  KeptRows<T> x, before;
  Tile<T> grad_out, hidden, grad_hidden;

  FeedForwardBackward(const FeedForward<T>& args, std::int64_t workers, Workspace& workspace)
      : w1_back(args.hidden, args.in, args.precision, workers, workspace),
        w2_back(args.out, args.hidden, args.precision, workers, workspace),
        w1(args.rows, args.hidden, args.in, args.precision, workers, workspace),
        w2(args.rows, args.out, args.hidden, args.precision, workers, workspace),
        b1(args.rows, args.hidden, workspace),
        b2(args.rows, args.out, workspace),
        scale(args.rows, args.norm ? args.in : 0, workspace),
        shift(args.rows, args.norm ? args.in : 0, workspace),
        norm(args.norm, args.in, workers, workspace),
        x(args.kept_x, args.precision, args.in, workers, workspace),
        before(args.kept_hidden, args.precision, args.hidden, workers, workspace),
        grad_out(args.drop_out.probability > 0.0 ? args.out : 0, workers, workspace),
        hidden(args.hidden, workers, workspace),
        grad_hidden(args.hidden, workers, workspace) {}
};

}  // namespace

template <typename T>
std::int64_t forward_bytes(const NormLinear<T>& args, std::int64_t workers) {
  return bytes<NormLinearForward<T>>(args, workers);
}
template <typename T>
std::int64_t backward_bytes(const NormLinear<T>& args, std::int64_t workers) {
  return bytes<NormLinearBackward<T>>(args, workers);
}
template <typename T>
std::int64_t forward_bytes(const FeedForward<T>& args, std::int64_t workers) {
  return bytes<FeedForwardForward<T>>(args, workers);
}
template <typename T>
std::int64_t backward_bytes(const FeedForward<T>& args, std::int64_t workers) {
  return bytes<FeedForwardBackward<T>>(args, workers);
}

template <typename T>
void forward(const NormLinear<T>& args, T* y, Workspace workspace, const Executor& executor) {
  const NormLinearForward<T> buffers(args, executor.workers(), workspace);
  buffers.w.pack(Transpose::kNo, args.w);
  for_tiles(args.rows, args.rows * args.in * args.out / 8, executor,
            [&](std::int64_t, std::int64_t worker, std::int64_t row, std::int64_t count) {
              const T* const normal = buffers.norm.forward(args.x + row * args.in, count, worker);
              buffers.w.multiply(normal, count, nullptr, y + row * args.out, worker);
              buffers.x.keep(args.x, buffers.norm, row, count, worker);
            });
}

template <typename T>
void backward(const NormLinear<T>& args, const T* grad, T* grad_x, T* grad_w,
              const RowNormGradients<T>& grad_norm, Workspace workspace, const Executor& executor) {
  const NormLinearBackward<T> buffers(args, executor.workers(), workspace);
  buffers.w_back.pack(Transpose::kYes, args.w);
  for (std::int64_t part = 0; part < buffers.w.parts; ++part) {
    buffers.w.clear(part);
    buffers.scale.clear(part);
    buffers.shift.clear(part);
  }
  for_tiles(args.rows, args.rows * args.in * args.out / 4, executor,
            [&](std::int64_t part, std::int64_t worker, std::int64_t row, std::int64_t count) {
              const T* const g = grad + row * args.out;
              const T* const x = buffers.x.rows(args.x, args.in, row, count, worker);
              const T* const normal = buffers.norm.forward(x, count, worker);
              buffers.w.add(normal, g, count, part, worker);
              T* const to_x = grad_x == nullptr ? nullptr : grad_x + row * args.in;
              if (!args.norm) {
                if (to_x != nullptr) buffers.w_back.multiply(g, count, nullptr, to_x, worker);
                return;
              }
              buffers.w_back.multiply(g, count, nullptr, buffers.norm.grad.of(worker), worker);
              buffers.norm.backward(x, count, worker, to_x, buffers.scale.of(part),
                                    buffers.shift.of(part));
            });
  buffers.w.finish(grad_w, executor);
  if (!args.norm) return;
  buffers.scale.finish(grad_norm.scale, executor);
  buffers.shift.finish(grad_norm.shift, executor);
}

template <typename T>
void forward(const FeedForward<T>& args, T* y, T* kept, Workspace workspace,
             const Executor& executor) {
  const FeedForwardForward<T> buffers(args, executor.workers(), workspace);
  buffers.w1.pack(Transpose::kYes, args.w1);
  buffers.w2.pack(Transpose::kYes, args.w2);
  for_tiles(args.rows, args.rows * args.hidden * (args.in + args.out) / 8, executor,
            [&](std::int64_t, std::int64_t worker, std::int64_t row, std::int64_t count) {
              const T* const normal = buffers.norm.forward(args.x + row * args.in, count, worker);
              T* const hidden = buffers.hidden.of(worker);
              T* const before = kept == nullptr ? hidden : kept + row * args.hidden;
              buffers.w1.multiply(normal, count, args.b1, before, worker);
              buffers.x.keep(args.x, buffers.norm, row, count, worker);
              if constexpr (std::is_same_v<T, float>) {
                if (args.kept_hidden != nullptr) {
                  kernels::round_numbers(before, count * args.hidden,
                                         args.kept_hidden + row * args.hidden);
                }
              }
              activate(args.activation, before, count * args.hidden, hidden, SerialExecutor());
              drop(args.drop_hidden, hidden, row * args.hidden, count * args.hidden);
              T* const out = y + row * args.out;
              buffers.w2.multiply(hidden, count, args.b2, out, worker);
              drop(args.drop_out, out, row * args.out, count * args.out);
              if (args.residual == nullptr) return;
              const T* const residual = args.residual + row * args.out;
              for (std::int64_t i = 0; i < count * args.out; ++i) out[i] += residual[i];
            });
}

template <typename T>
void backward(const FeedForward<T>& args, const T* kept, const T* grad,
              const FeedForwardGradients<T>& out, Workspace workspace, const Executor& executor) {
  const FeedForwardBackward<T> buffers(args, executor.workers(), workspace);
  buffers.w1_back.pack(Transpose::kNo, args.w1);
  buffers.w2_back.pack(Transpose::kNo, args.w2);
  for (std::int64_t part = 0; part < buffers.w1.parts; ++part) {
    buffers.w1.clear(part);
    buffers.w2.clear(part);
    for (const VectorSums<T>* sums : {&buffers.b1, &buffers.b2, &buffers.scale, &buffers.shift}) {
      sums->clear(part);
    }
  }
  for_tiles(args.rows, args.rows * args.hidden * (args.in + args.out) / 4, executor,
            [&](std::int64_t part, std::int64_t worker, std::int64_t row, std::int64_t count) {
              const T* g = grad + row * args.out;
              if (args.drop_out.probability > 0.0) {
                T* const dropped = buffers.grad_out.of(worker);
                std::copy_n(g, count * args.out, dropped);
                drop(args.drop_out, dropped, row * args.out, count * args.out);
                g = dropped;
              }
              const T* const before = buffers.before.rows(kept, args.hidden, row, count, worker);
              T* const hidden = buffers.hidden.of(worker);
              activate(args.activation, before, count * args.hidden, hidden, SerialExecutor());
              drop(args.drop_hidden, hidden, row * args.hidden, count * args.hidden);
              buffers.w2.add(g, hidden, count, part, worker);
              buffers.b2.add(g, count, part);

              T* const grad_hidden = buffers.grad_hidden.of(worker);
              buffers.w2_back.multiply(g, count, nullptr, grad_hidden, worker);
              drop(args.drop_hidden, grad_hidden, row * args.hidden, count * args.hidden);
              activate_adjoint(args.activation, before, grad_hidden, count * args.hidden,
                               grad_hidden, SerialExecutor());
              const T* const x = buffers.x.rows(args.x, args.in, row, count, worker);
              const T* const normal = buffers.norm.forward(x, count, worker);
              buffers.w1.add(grad_hidden, normal, count, part, worker);
              buffers.b1.add(grad_hidden, count, part);

              T* const to_x = out.x == nullptr ? nullptr : out.x + row * args.in;
              if (!args.norm) {
                if (to_x != nullptr)
                  buffers.w1_back.multiply(grad_hidden, count, nullptr, to_x, worker);
                return;
              }
              buffers.w1_back.multiply(grad_hidden, count, nullptr, buffers.norm.grad.of(worker),
                                       worker);
              buffers.norm.backward(x, count, worker, to_x, buffers.scale.of(part),
                                    buffers.shift.of(part));
            });
  buffers.w1.finish(out.w1, executor);
  buffers.w2.finish(out.w2, executor);
  buffers.b1.finish(out.b1, executor);
  buffers.b2.finish(out.b2, executor);
  if (!args.norm) return;
  buffers.scale.finish(out.norm.scale, executor);
  buffers.shift.finish(out.norm.shift, executor);
}

#define MPSSM_INSTANTIATE(T)                                                                 \
  template std::int64_t forward_bytes(const NormLinear<T>&, std::int64_t);                   \
  template std::int64_t backward_bytes(const NormLinear<T>&, std::int64_t);                  \
  template std::int64_t forward_bytes(const FeedForward<T>&, std::int64_t);                  \
  template std::int64_t backward_bytes(const FeedForward<T>&, std::int64_t);                 \
  template void forward(const NormLinear<T>&, T*, Workspace, const Executor&);               \
  template void backward(const NormLinear<T>&, const T*, T*, T*, const RowNormGradients<T>&, \
                         Workspace, const Executor&);                                        \
  template void forward(const FeedForward<T>&, T*, T*, Workspace, const Executor&);          \
  template void backward(const FeedForward<T>&, const T*, const T*,                          \
                         const FeedForwardGradients<T>&, Workspace, const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
