// SPDX-License-Identifier: MIT
#include "mpssm/graph/order.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "mpssm/graph/gso_data.h"

namespace mpssm::graph {

OrderCache& order_cache(const Gso& gso) { return gso.data_->order; }

namespace {

/// A breadth-first search that begins each component at its first unvisited node in `starts`.
/// Returns nodes in the order they were found; `ends` receives the last one of each component.
std::vector<std::int32_t> breadth_first(const Gso& gso, const std::vector<std::int32_t>& starts,
                                        std::vector<std::int32_t>& ends) {
  const kernels::CsrView<double> sides[2] = {gso.view<double>(), gso.transpose_view<double>()};
  const int num_sides = sides[0].col == sides[1].col ? 1 : 2;
  const std::int64_t n = gso.num_nodes();
  std::vector<char> found(static_cast<std::size_t>(n), 0);
  std::vector<std::int32_t> queue;
  queue.reserve(static_cast<std::size_t>(n));
  const auto find = [&](std::int32_t node) {
    if (found[node] != 0) return;
    found[node] = 1;
    queue.push_back(node);
  };
  ends.clear();
  for (const std::int32_t start : starts) {
    if (found[start] != 0) continue;
    std::size_t next = queue.size();
    find(start);
    for (; next < queue.size(); ++next) {
      for (int side = 0; side < num_sides; ++side) {
        const kernels::CsrView<double>& a = sides[side];
        for (std::int64_t e = a.row_ptr[queue[next]]; e < a.row_ptr[queue[next] + 1]; ++e) {
          find(a.col[e]);
        }
      }
    }
    ends.push_back(queue.back());
  }
  return queue;
}

NodeOrder order_of(std::vector<std::int32_t> nodes) {
  std::vector<std::int32_t> place(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = static_cast<std::int32_t>(i);
  return {std::move(nodes), std::move(place)};
}

/// The first search, from anywhere; its ends are far out and where the second one begins.
NodeOrder first_order(const Gso& gso, std::vector<std::int32_t>& ends) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(gso.num_nodes()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  return order_of(breadth_first(gso, all, ends));
}

/// The order that is kept: of a second search, from far out. Without `starts` they are looked for.
const NodeOrder& kept_order(const Gso& gso, std::vector<std::int32_t> starts) {
  OrderCache& cache = order_cache(gso);
  std::call_once(cache.order_once, [&] {
    if (starts.empty()) first_order(gso, starts);
    std::vector<std::int32_t> ends;
    cache.order = order_of(breadth_first(gso, starts, ends));
  });
  return cache.order;
}

double find_entries_brought_near(const Gso& gso) {
  // Below this the order is not worth its making: reading and writing rows in another order costs
  // about as much as an entry that is not near.
  constexpr double kWorthwhile = 1.0;
  const std::int64_t n = gso.num_nodes();
  if (n < kLeastOrderedNodes) return 0.0;
  const double degree = static_cast<double>(gso.num_nonzeros()) / static_cast<double>(n);
  const double given = near_share(gso);
  if ((1.0 - given) * degree < kWorthwhile) return 0.0;
  // One search is enough to see that a graph has no locality to be found.
  std::vector<std::int32_t> ends;
  const NodeOrder first = first_order(gso, ends);
  const double gain = (near_share(gso, &first) - given) * degree;
  if (gain < kWorthwhile / 2) return 0.0;
  return (near_share(gso, &kept_order(gso, std::move(ends))) - given) * degree;
}

template <typename T>
OrderedRows<T> reorder(const NodeOrder& order, const kernels::CsrView<T>& a, bool with_pattern,
                       bool with_values) {
  std::vector<std::int64_t> row_ptr;
  std::vector<std::int32_t> col;
  std::vector<T> value;
  const std::size_t nonzeros = static_cast<std::size_t>(a.row_ptr[a.num_rows]);
  if (with_pattern) {
    row_ptr.reserve(order.node.size() + 1);
    row_ptr.push_back(0);
    col.reserve(nonzeros);
  }
  if (with_values) value.reserve(nonzeros);
  for (const std::int32_t node : order.node) {
    for (std::int64_t e = a.row_ptr[node]; e < a.row_ptr[node + 1]; ++e) {
      if (with_pattern) col.push_back(order.place[a.col[e]]);
      if (with_values) value.push_back(a.value[e]);
    }
    if (with_pattern) row_ptr.push_back(std::ssize(col));
  }
  return {std::move(row_ptr), std::move(col), std::move(value)};
}

template <typename T>
OrderedGso<T> make_ordered(const Gso& gso) {
  const NodeOrder& order = node_order(gso);
  const kernels::CsrView<T> a = gso.view<T>();
  const kernels::CsrView<T> transposed = gso.transpose_view<T>();
  return {reorder(order, a, true, true),
          reorder(order, transposed, transposed.col != a.col, transposed.value != a.value)};
}

}  // namespace

const NodeOrder& node_order(const Gso& gso) { return kept_order(gso, {}); }

double near_share(const Gso& gso, const NodeOrder* order) {
  const kernels::CsrView<double> a = gso.view<double>();
  const auto place = [&](std::int64_t node) -> std::int64_t {
    return order == nullptr ? node : order->place[node];
  };
  std::int64_t near = 0;
  for (std::int64_t row = 0; row < a.num_rows; ++row) {
    const std::int64_t here = place(row);
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      near += std::abs(place(a.col[e]) - here) <= kNearRows ? 1 : 0;
    }
  }
  return static_cast<double>(near) /
         static_cast<double>(std::max<std::int64_t>(gso.num_nonzeros(), 1));
}

double entries_brought_near(const Gso& gso) {
  OrderCache& cache = order_cache(gso);
  if (!cache.is_worth_looking) return 0.0;
  std::call_once(cache.gain_once, [&] { cache.gain = find_entries_brought_near(gso); });
  return cache.gain;
}

template <typename T>
kernels::CsrView<T> OrderedGso<T>::view() const {
  return {std::ssize(rows.row_ptr) - 1, rows.row_ptr.data(), rows.col.data(), rows.value.data()};
}

template <typename T>
kernels::CsrView<T> OrderedGso<T>::transpose_view() const {
  kernels::CsrView<T> result = view();
  if (!transposed.row_ptr.empty()) {
    result.row_ptr = transposed.row_ptr.data();
    result.col = transposed.col.data();
  }
  if (!transposed.value.empty()) result.value = transposed.value.data();
  return result;
}

template <typename T>
const OrderedGso<T>& ordered_gso(const Gso& gso) {
  OrderCache::Rows<T>& cache = std::get<OrderCache::Rows<T>>(order_cache(gso).rows);
  std::call_once(cache.once, [&] { cache.ordered = make_ordered<T>(gso); });
  return cache.ordered;
}

template <typename T>
void give_order(const Gso& gso, double entries_brought_near, NodeOrder order, OrderedGso<T> rows) {
  OrderCache& cache = order_cache(gso);
  auto& of_type = std::get<OrderCache::Rows<T>>(cache.rows);
  cache.is_worth_looking = true;
  std::call_once(cache.gain_once, [&] { cache.gain = entries_brought_near; });
  std::call_once(cache.order_once, [&] { cache.order = std::move(order); });
  std::call_once(of_type.once, [&] { of_type.ordered = std::move(rows); });
}

std::int64_t ordered_bytes(const Gso& gso, std::int64_t element_size) {
  const bool own_pattern = gso.view<float>().col != gso.transpose_view<float>().col;
  const bool own_values = !gso.is_symmetric();
  const std::int64_t pattern = 8 * gso.num_nodes() + 4 * gso.num_nonzeros();
  return 8 * gso.num_nodes() + (own_pattern ? 2 : 1) * pattern +
         (own_values ? 2 : 1) * element_size * gso.num_nonzeros();
}

template struct OrderedGso<float>;
template struct OrderedGso<double>;
template const OrderedGso<float>& ordered_gso<float>(const Gso&);
template const OrderedGso<double>& ordered_gso<double>(const Gso&);
template void give_order<float>(const Gso&, double, NodeOrder, OrderedGso<float>);
template void give_order<double>(const Gso&, double, NodeOrder, OrderedGso<double>);

}  // namespace mpssm::graph
