// SPDX-License-Identifier: MIT
#include "mpssm/engine/embedding.h"

#include <algorithm>
#include <vector>

#include "mpssm/engine/tasks.h"

namespace mpssm::engine {

template <typename T>
void embed(const EmbeddingRows& codes, const T* table, const T* bias, std::int64_t width, T* y,
           const Executor& executor) {
  constexpr std::int64_t kRows = 256;  // of a task
  run_tasks(executor, (codes.rows + kRows - 1) / kRows, codes.rows * codes.columns * width,
            [&](std::int64_t task) {
              const std::int64_t end = std::min(codes.rows, (task + 1) * kRows);
              for (std::int64_t r = task * kRows; r < end; ++r) {
                T* to = y + r * width;
                std::fill(to, to + width, T{0});
                for (std::int64_t c = 0; c < codes.columns; ++c) {
                  const std::int32_t row = codes.index[r * codes.columns + c];
                  if (row < 0) continue;
                  const T* from = table + row * width;
                  for (std::int64_t i = 0; i < width; ++i) to[i] += from[i];
                }
                for (std::int64_t i = 0; bias != nullptr && i < width; ++i) to[i] += bias[i];
              }
            });
}

template <typename T>
void embed_adjoint(const EmbeddingRows& codes, const T* g, std::int64_t num_table,
                   std::int64_t width, T* grad_table, const Executor& executor) {
  constexpr std::int64_t kChannels =
      16;  // of a task: it sees every row, so that sums have an order
  run_tasks(executor, (width + kChannels - 1) / kChannels, codes.rows * codes.columns * width,
            [&](std::int64_t task) {
              const std::int64_t first = task * kChannels;
              const std::int64_t count = std::min(kChannels, width - first);
              std::vector<double> sums(static_cast<std::size_t>(num_table * kChannels), 0.0);
              for (std::int64_t r = 0; r < codes.rows; ++r) {
                const T* from = g + r * width + first;
                for (std::int64_t c = 0; c < codes.columns; ++c) {
                  const std::int32_t row = codes.index[r * codes.columns + c];
                  if (row < 0) continue;
                  double* to = sums.data() + row * kChannels;
                  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
                }
              }
              for (std::int64_t row = 0; row < num_table; ++row) {
                for (std::int64_t i = 0; i < count; ++i) {
                  grad_table[row * width + first + i] = static_cast<T>(sums[row * kChannels + i]);
                }
              }
            });
}

template void embed(const EmbeddingRows&, const float*, const float*, std::int64_t, float*,
                    const Executor&);
template void embed(const EmbeddingRows&, const double*, const double*, std::int64_t, double*,
                    const Executor&);
template void embed_adjoint(const EmbeddingRows&, const float*, std::int64_t, std::int64_t, float*,
                            const Executor&);
template void embed_adjoint(const EmbeddingRows&, const double*, std::int64_t, std::int64_t,
                            double*, const Executor&);

}  // namespace mpssm::engine
