// SPDX-License-Identifier: MIT
#include "mpssm/engine/pool.h"

#include <algorithm>
#include <cmath>

#include "mpssm/engine/tasks.h"

namespace mpssm::engine {
namespace {

/// One graph: rows [0, count) of x.
template <typename T>
void pool_graph(Pooling pooling, const T* x, std::int64_t count, std::int64_t width, T* y) {
  if (pooling == Pooling::kSumMaxMean) {
    pool_graph(Pooling::kSum, x, count, width, y);
    pool_graph(Pooling::kMax, x, count, width, y + width);
    for (std::int64_t j = 0; j < width; ++j) {
      y[2 * width + j] = count == 0 ? T{0} : y[j] / static_cast<T>(count);
    }
    return;
  }
  std::fill(y, y + width, T{0});
  if (count == 0) return;
  if (pooling == Pooling::kMax) {
    std::copy(x, x + width, y);
    for (std::int64_t i = 1; i < count; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        const T candidate = x[i * width + j];
        if (candidate > y[j] || std::isnan(candidate)) y[j] = candidate;
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < width; ++j) y[j] += x[i * width + j];
  }
  if (pooling == Pooling::kMean) {
    for (std::int64_t j = 0; j < width; ++j) y[j] /= static_cast<T>(count);
  }
}

/// grad_x += what this graph's pooling says.
template <typename T>
void pool_graph_adjoint(Pooling pooling, const T* x, std::int64_t count, std::int64_t width,
                        const T* y, const T* grad, T* grad_x) {
  if (pooling == Pooling::kSumMaxMean) {
    pool_graph_adjoint(Pooling::kMean, x, count, width, y + 2 * width, grad + 2 * width, grad_x);
    pool_graph_adjoint(Pooling::kMax, x, count, width, y + width, grad + width, grad_x);
    pool_graph_adjoint(Pooling::kSum, x, count, width, y, grad, grad_x);
    return;
  }
  if (pooling == Pooling::kMax) {
    for (std::int64_t j = 0; j < width; ++j) {
      const auto is_largest = [&](std::int64_t i) {
        const T number = x[i * width + j];
        return number == y[j] || std::isnan(number);
      };
      std::int64_t shared = 0;
      for (std::int64_t i = 0; i < count; ++i) shared += is_largest(i) ? 1 : 0;
      for (std::int64_t i = 0; i < count; ++i) {
        if (is_largest(i)) grad_x[i * width + j] += grad[j] / static_cast<T>(shared);
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      grad_x[i * width + j] +=
          pooling == Pooling::kMean ? grad[j] / static_cast<T>(count) : grad[j];
    }
  }
}

}  // namespace

std::int64_t pooled_copies(Pooling pooling) { return pooling == Pooling::kSumMaxMean ? 3 : 1; }

template <typename T>
void pool(Pooling pooling, std::span<const std::int64_t> graph_ptr, const T* x, std::int64_t width,
          T* y, const Executor& executor) {
  const auto graphs = static_cast<std::int64_t>(graph_ptr.size()) - 1;
  run_tasks(executor, graphs, 4 * graph_ptr.back() * width, [&](std::int64_t g) {
    const std::int64_t begin = graph_ptr[g];
    pool_graph(pooling, x + begin * width, graph_ptr[g + 1] - begin, width,
               y + g * pooled_copies(pooling) * width);
  });
}

template <typename T>
void pool_adjoint(Pooling pooling, std::span<const std::int64_t> graph_ptr, const T* x,
                  std::int64_t width, const T* y, const T* grad, T* grad_x,
                  const Executor& executor) {
  const auto graphs = static_cast<std::int64_t>(graph_ptr.size()) - 1;
  run_tasks(executor, graphs, 8 * graph_ptr.back() * width, [&](std::int64_t g) {
    const std::int64_t begin = graph_ptr[g];
    const std::int64_t at = g * pooled_copies(pooling) * width;
    std::fill(grad_x + begin * width, grad_x + graph_ptr[g + 1] * width, T{0});
    pool_graph_adjoint(pooling, x + begin * width, graph_ptr[g + 1] - begin, width, y + at,
                       grad + at, grad_x + begin * width);
  });
}

#define MPSSM_INSTANTIATE(T)                                                                    \
  template void pool<T>(Pooling, std::span<const std::int64_t>, const T*, std::int64_t, T*,     \
                        const Executor&);                                                       \
  template void pool_adjoint<T>(Pooling, std::span<const std::int64_t>, const T*, std::int64_t, \
                                const T*, const T*, T*, const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
