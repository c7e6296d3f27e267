// SPDX-License-Identifier: MIT
// Pooling of node features over the graphs of a batch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "mpssm/base/enum_table.h"
#include "mpssm/engine/executor.h"

namespace mpssm::engine {

enum class Pooling { kSum, kMean, kMax, kSumMaxMean /* the three side by side */ };
inline constexpr base::EnumRow<Pooling> kPoolings[] = {
    {Pooling::kMean, "mean"},
    {Pooling::kSum, "sum"},
    {Pooling::kMax, "max"},
    {Pooling::kSumMaxMean, "sum_max_mean"},
};
constexpr base::EnumTable<Pooling> table_of(Pooling) { return kPoolings; }
constexpr std::string_view to_string(Pooling pooling) { return table_of(pooling).name(pooling); }
/// Throws std::invalid_argument listing the names.
inline Pooling pooling_from_name(std::string_view name) {
  return table_of(Pooling{}).from_name("pooling_from_name", name);
}

/// Columns of the result per column of x.
std::int64_t pooled_copies(Pooling pooling);

/// y [G, copies * width] from x [N, width]; nodes [graph_ptr[g], graph_ptr[g+1]) are graph g's,
/// added in order. A graph without nodes gives zeros.
template <typename T>
void pool(Pooling pooling, std::span<const std::int64_t> graph_ptr, const T* x, std::int64_t width,
          T* y, const Executor& executor);

/// grad_x from the gradient of y; nodes that share the maximum share its gradient.
template <typename T>
void pool_adjoint(Pooling pooling, std::span<const std::int64_t> graph_ptr, const T* x,
                  std::int64_t width, const T* y, const T* grad, T* grad_x,
                  const Executor& executor);

}  // namespace mpssm::engine
