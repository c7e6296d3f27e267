// SPDX-License-Identifier: MIT
#include "mpssm/engine/causal_convolution.h"

#include <algorithm>

#include "mpssm/engine/row_place.h"
#include "mpssm/engine/tasks.h"

namespace mpssm::engine {
namespace {

/// A line is one node of one sequence, over all its steps.
template <typename T>
struct Lines {
  explicit Lines(const CausalConvolution<T>& args)
      : parts(args.batch * args.nodes),
        step(args.nodes * args.width),
        work(parts.rows * args.steps * std::min(args.steps, args.taps) * args.width) {}
  std::int64_t first_number(const CausalConvolution<T>& args, std::int64_t line) const {
    return line / args.nodes * args.steps * step + line % args.nodes * args.width;
  }
  RowParts parts;
  std::int64_t step;  // numbers from one step to the next
  std::int64_t work;
};

}  // namespace

template <typename T>
void causal_convolution(const CausalConvolution<T>& args, T* y, const Executor& executor) {
  const Lines<T> lines(args);
  run_tasks(executor, lines.parts.count, lines.work, [&](std::int64_t part) {
    for (std::int64_t line = lines.parts.begin(part); line < lines.parts.end(part); ++line) {
      const std::int64_t first = lines.first_number(args, line);
      for (std::int64_t t = 0; t < args.steps; ++t) {
        T* const out = y + first + t * lines.step;
        std::fill(out, out + args.width, T{0});
        for (std::int64_t s = 0; s <= std::min(t, args.taps - 1); ++s) {
          const T* const in = args.x + first + (t - s) * lines.step;
          const T* const k = args.kernel + s * args.width;
          for (std::int64_t c = 0; c < args.width; ++c) out[c] += k[c] * in[c];
        }
      }
    }
  });
}

template <typename T>
std::int64_t causal_convolution_scratch(const CausalConvolution<T>& args) {
  return Lines<T>(args).parts.count * args.taps * args.width;
}

template <typename T>
void causal_convolution_adjoint(const CausalConvolution<T>& args, const T* grad, T* grad_x,
                                T* grad_kernel, T* scratch, const Executor& executor) {
  const Lines<T> lines(args);
  const std::int64_t size = args.taps * args.width;
  run_tasks(executor, lines.parts.count, 2 * lines.work, [&](std::int64_t part) {
    T* const sums = scratch + part * size;
    std::fill(sums, sums + size, T{0});
    for (std::int64_t line = lines.parts.begin(part); line < lines.parts.end(part); ++line) {
      const std::int64_t first = lines.first_number(args, line);
      for (std::int64_t t = 0; t < args.steps; ++t) {
        const T* const in = args.x + first + t * lines.step;
        T* const out = grad_x + first + t * lines.step;
        std::fill(out, out + args.width, T{0});
        for (std::int64_t s = 0; s < std::min(args.steps - t, args.taps); ++s) {
          const T* const g = grad + first + (t + s) * lines.step;
          const T* const k = args.kernel + s * args.width;
          T* const sum = sums + s * args.width;
          for (std::int64_t c = 0; c < args.width; ++c) {
            out[c] += k[c] * g[c];
            sum[c] += in[c] * g[c];
          }
        }
      }
    }
  });
  if (lines.parts.count == 0) return std::fill(grad_kernel, grad_kernel + size, T{0});
  sum_of_parts(scratch, lines.parts.count, size, grad_kernel, executor);
}

#define MPSSM_INSTANTIATE(T)                                                                     \
  template void causal_convolution<T>(const CausalConvolution<T>&, T*, const Executor&);         \
  template std::int64_t causal_convolution_scratch<T>(const CausalConvolution<T>&);              \
  template void causal_convolution_adjoint<T>(const CausalConvolution<T>&, const T*, T*, T*, T*, \
                                              const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
