// SPDX-License-Identifier: MIT
#include "mpssm/engine/feed_forward.h"

#include <algorithm>

#include "mpssm/engine/row_tiles.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/dropout.h"

namespace mpssm::engine {
namespace {

using kernels::Transpose;

/// Of rows [row, row + count) of the call.
template <typename T>
void drop(const Drop& how, T* numbers, const RowPlace& place, std::int64_t row, std::int64_t count,
          std::int64_t width) {
  if (how.probability == 0.0) return;
  const auto drop_rows = [&](std::int64_t first, std::int64_t begin, std::int64_t rows) {
    T* const some = numbers + begin * width;
    kernels::dropout(some, some, rows * width, static_cast<std::uint64_t>(first * width), how.seed,
                     how.probability);
  };
  if (place.places == nullptr) return drop_rows(place.first + row, 0, count);
  for (std::int64_t i = 0; i < count; ++i) drop_rows(place.places[row + i], i, 1);
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
        w(parts_of(args), args.in, args.out, args.precision, workers, workspace),
        scale(parts_of(args), args.norm ? args.in : 0, workspace),
        shift(parts_of(args), args.norm ? args.in : 0, workspace),
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
  PackedMatrix<T> w1_again, w1_back, w2_back;
  WeightSums<T> w1, w2;
  VectorSums<T> b1, b2, scale, shift;
  NormTiles<T> norm;
  KeptRows<T> x;
  Tile<T> grad_out, slope, hidden, grad_hidden;

  FeedForwardBackward(const FeedForward<T>& args, std::int64_t workers, Workspace& workspace)
      : w1_again(args.in, args.hidden, args.precision, workers, workspace),
        w1_back(args.hidden, args.in, args.precision, workers, workspace),
        w2_back(args.out, args.hidden, args.precision, workers, workspace),
        w1(parts_of(args), args.hidden, args.in, args.precision, workers, workspace),
        w2(parts_of(args), args.out, args.hidden, args.precision, workers, workspace),
        b1(parts_of(args), args.hidden, workspace),
        b2(parts_of(args), args.out, workspace),
        scale(parts_of(args), args.norm ? args.in : 0, workspace),
        shift(parts_of(args), args.norm ? args.in : 0, workspace),
        norm(args.norm, args.in, workers, workspace),
        x(args.kept_x, args.precision, args.in, workers, workspace),
        grad_out(args.drop_out.probability > 0.0 ? args.out : 0, workers, workspace),
        slope(args.hidden, workers, workspace),
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
  for_tiles(parts_of(args), args.rows * args.in * args.out / 8, executor,
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
  for_tiles(parts_of(args), args.rows * args.in * args.out / 4, executor,
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
void forward(const FeedForward<T>& args, T* y, Workspace workspace, const Executor& executor) {
  const FeedForwardForward<T> buffers(args, executor.workers(), workspace);
  buffers.w1.pack(Transpose::kYes, args.w1);
  buffers.w2.pack(Transpose::kYes, args.w2);
  for_tiles(parts_of(args), args.rows * args.hidden * (args.in + args.out) / 8, executor,
            [&](std::int64_t, std::int64_t worker, std::int64_t row, std::int64_t count) {
              const T* const normal = buffers.norm.forward(args.x + row * args.in, count, worker);
              T* const hidden = buffers.hidden.of(worker);
              buffers.w1.multiply(normal, count, args.b1, hidden, worker);
              buffers.x.keep(args.x, buffers.norm, row, count, worker);
              activate(args.activation, hidden, count * args.hidden, hidden, SerialExecutor());
              drop(args.drop_hidden, hidden, args.place, row, count, args.hidden);
              T* const out = y + row * args.out;
              buffers.w2.multiply(hidden, count, args.b2, out, worker);
              drop(args.drop_out, out, args.place, row, count, args.out);
              if (args.residual == nullptr) return;
              const T* const residual = args.residual + row * args.out;
              for (std::int64_t i = 0; i < count * args.out; ++i) out[i] += residual[i];
            });
}

template <typename T>
void backward(const FeedForward<T>& args, const T* grad, const FeedForwardGradients<T>& out,
              Workspace workspace, const Executor& executor) {
  const FeedForwardBackward<T> buffers(args, executor.workers(), workspace);
  buffers.w1_again.pack(Transpose::kYes, args.w1);
  buffers.w1_back.pack(Transpose::kNo, args.w1);
  buffers.w2_back.pack(Transpose::kNo, args.w2);
  for (std::int64_t part = 0; part < buffers.w1.parts; ++part) {
    buffers.w1.clear(part);
    buffers.w2.clear(part);
    for (const VectorSums<T>* sums : {&buffers.b1, &buffers.b2, &buffers.scale, &buffers.shift}) {
      sums->clear(part);
    }
  }
  for_tiles(parts_of(args), args.rows * args.hidden * (args.in + args.out) / 4, executor,
            [&](std::int64_t part, std::int64_t worker, std::int64_t row, std::int64_t count) {
              const T* g = grad + row * args.out;
              if (args.drop_out.probability > 0.0) {
                T* const dropped = buffers.grad_out.of(worker);
                std::copy_n(g, count * args.out, dropped);
                drop(args.drop_out, dropped, args.place, row, count, args.out);
                g = dropped;
              }
              const T* const x = buffers.x.rows(args.x, args.in, row, count, worker);
              const T* const normal = buffers.norm.forward(x, count, worker);
              T* const hidden = buffers.hidden.of(worker);
              T* const slope = buffers.slope.of(worker);
              buffers.w1_again.multiply(normal, count, args.b1, hidden, worker);
              activate_and_slope(args.activation, hidden, count * args.hidden, hidden, slope,
                                 SerialExecutor());
              drop(args.drop_hidden, hidden, args.place, row, count, args.hidden);
              buffers.w2.add(g, hidden, count, part, worker);
              buffers.b2.add(g, count, part);

              T* const grad_hidden = buffers.grad_hidden.of(worker);
              buffers.w2_back.multiply(g, count, nullptr, grad_hidden, worker);
              drop(args.drop_hidden, grad_hidden, args.place, row, count, args.hidden);
              for (std::int64_t i = 0; i < count * args.hidden; ++i) grad_hidden[i] *= slope[i];
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
  template void forward(const FeedForward<T>&, T*, Workspace, const Executor&);              \
  template void backward(const FeedForward<T>&, const T*, const FeedForwardGradients<T>&,    \
                         Workspace, const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
