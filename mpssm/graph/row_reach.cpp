// SPDX-License-Identifier: MIT
#include "mpssm/graph/row_reach.h"

#include <algorithm>
#include <mutex>

#include "mpssm/graph/gso_data.h"

namespace mpssm::graph {

ReachCache& reach_cache(const Gso& gso) { return gso.data_->reach; }

namespace {

template <typename T>
RowReach reach_of(const kernels::CsrView<T>& a, const kernels::CsrView<T>& transposed) {
  const kernels::CsrView<T> sides[2] = {a, transposed};
  const int num_sides = a.col == transposed.col ? 1 : 2;
  RowReach reach;
  std::int32_t last = 0;
  for (std::int64_t begin = 0; begin < a.num_rows; begin += kReachRows) {
    const std::int64_t end = std::min(a.num_rows, begin + kReachRows);
    last = std::max(last, static_cast<std::int32_t>(end - 1));
    for (int side = 0; side < num_sides; ++side) {
      const std::int64_t* const row_ptr = sides[side].row_ptr;
      for (std::int64_t e = row_ptr[begin]; e < row_ptr[end]; ++e) {
        last = std::max(last, sides[side].col[e]);
      }
    }
    reach.push_back(std::int64_t{last} + 1);
  }
  return reach;
}

}  // namespace

template <typename T>
const RowReach& row_reach(const Gso& gso, bool is_ordered) {
  ReachCache::Order& cache = is_ordered ? reach_cache(gso).node_order : reach_cache(gso).given;
  std::call_once(cache.once, [&] {
    if (is_ordered) {
      const OrderedGso<T>& ordered = ordered_gso<T>(gso);
      cache.reach = reach_of(ordered.view(), ordered.transpose_view());
    } else {
      cache.reach = reach_of(gso.view<T>(), gso.transpose_view<T>());
    }
  });
  return cache.reach;
}
template const RowReach& row_reach<float>(const Gso&, bool);
template const RowReach& row_reach<double>(const Gso&, bool);

}  // namespace mpssm::graph
