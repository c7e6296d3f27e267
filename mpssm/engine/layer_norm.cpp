// SPDX-License-Identifier: MIT
#include "mpssm/engine/layer_norm.h"

#include <algorithm>

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/layer_norm.h"

namespace mpssm::engine {
namespace {

constexpr std::int64_t kTaskRows = 512;

std::int64_t num_tasks(std::int64_t rows) { return (rows + kTaskRows - 1) / kTaskRows; }

template <typename T>
kernels::LayerNormArgs<T> kernel_args(const LayerNorm<T>& args) {
  return {args.width, args.epsilon, args.x, args.scale, args.mean, args.inverse};
}

}  // namespace

template <typename T>
void layer_norm(const LayerNorm<T>& args, const T* shift, T* y, const Executor& executor) {
  run_tasks(executor, num_tasks(args.rows), 4 * args.rows * args.width, [&](std::int64_t task) {
    kernels::layer_norm(kernel_args(args), shift, y, task * kTaskRows,
                        std::min(args.rows, (task + 1) * kTaskRows));
  });
}

std::int64_t layer_norm_scratch(std::int64_t rows, std::int64_t width) {
  return 2 * RowParts(rows).count * width;
}

template <typename T>
void layer_norm_adjoint(const LayerNorm<T>& args, const T* grad, T* grad_x, T* grad_scale,
                        T* grad_shift, T* scratch, const Executor& executor) {
  const RowParts parts(args.rows, args.place.all);
  T* const scale_sums = scratch;
  T* const shift_sums = scratch + parts.count * args.width;
  std::fill(scratch, scratch + 2 * parts.count * args.width, T{0});
  run_tasks(executor, parts.count, 8 * args.rows * args.width, [&](std::int64_t part) {
    kernels::layer_norm_adjoint(kernel_args(args), grad, grad_x, scale_sums + part * args.width,
                                shift_sums + part * args.width, parts.begin(part), parts.end(part));
  });
  sum_of_parts(scale_sums, parts.count, args.width, grad_scale, executor);
  sum_of_parts(shift_sums, parts.count, args.width, grad_shift, executor);
}

#define MPSSM_INSTANTIATE(T)                                                         \
  template void layer_norm<T>(const LayerNorm<T>&, const T*, T*, const Executor&);   \
  template void layer_norm_adjoint<T>(const LayerNorm<T>&, const T*, T*, T*, T*, T*, \
                                      const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
