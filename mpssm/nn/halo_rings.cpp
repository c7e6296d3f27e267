// SPDX-License-Identifier: MIT
#include "mpssm/nn/halo_rings.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "mpssm/ranks/collectives.h"
#include "mpssm/ranks/halo.h"

namespace mpssm::nn {
namespace {

double sum_of_ranks(ranks::Communicator& ranks, double mine) {
  return ranks::sum_few_in_order(ranks, {&mine, 1}, ranks.size(), 1).front();
}

void append(OwnRows& rows, const std::vector<std::int64_t>& ptr,
            const std::vector<std::int32_t>& col, const std::vector<float>& value) {
  const std::int64_t before = rows.row_ptr.back();
  for (std::size_t i = 1; i < ptr.size(); ++i) rows.row_ptr.push_back(before + ptr[i]);
  rows.col.insert(rows.col.end(), col.begin(), col.end());
  rows.value.insert(rows.value.end(), value.begin(), value.end());
}

}  // namespace

std::optional<HaloRings> fetch_rings(ranks::Communicator& ranks,
                                     const std::vector<std::int64_t>& bounds, const OwnRows& rows,
                                     std::int64_t hops, double too_many, double most) {
  const std::int64_t first = bounds[ranks.rank()];
  const std::int64_t last = bounds[ranks.rank() + 1];
  HaloRings rings{.within = {last - first}};
  std::vector<std::int64_t> ring = ranks::columns_of_others(first, last, rows.col);
  std::vector<std::int64_t> seen;  // nodes of all rings, sorted
  double again = 0.0;              // rows of them that are computed here
  for (std::int64_t hop = 1; hop <= hops; ++hop) {
    rings.nodes.insert(rings.nodes.end(), ring.begin(), ring.end());
    rings.within.push_back(last - first + std::ssize(rings.nodes));
    const auto count = static_cast<double>(rings.nodes.size());
    rings.rows_of_all_ranks = sum_of_ranks(ranks, count + ranks::kRowComputedAgain * again);
    again += count;
    const bool is_large =
        static_cast<double>(rings.within.back()) > most * static_cast<double>(rings.within[1]);
    if (rings.rows_of_all_ranks >= too_many || ranks::any(ranks, is_large)) return std::nullopt;
    if (hop == hops) break;
    const ranks::Halo halo(ranks, bounds, ring);
    std::vector<std::int64_t> ptr;
    const std::vector<std::int32_t> col = halo.fill_lists(rows.row_ptr, rows.col.data(), ptr);
    std::vector<std::int64_t> known;
    std::merge(seen.begin(), seen.end(), ring.begin(), ring.end(), std::back_inserter(known));
    seen = std::move(known);
    const std::vector<std::int64_t> read = ranks::columns_of_others(first, last, col);
    ring.clear();
    std::set_difference(read.begin(), read.end(), seen.begin(), seen.end(),
                        std::back_inserter(ring));
    append(rings.rows, ptr, col, halo.fill_lists(rows.row_ptr, rows.value.data(), ptr));
  }
  return rings;
}

void append_rings(std::int64_t first, const HaloRings& rings, OwnRows& own) {
  append(own, rings.rows.row_ptr, rings.rows.col, rings.rows.value);
  std::vector<std::int32_t> order(rings.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return rings.nodes[a] < rings.nodes[b]; });
  const std::int64_t count = rings.within.front();
  for (std::int32_t& column : own.col) {
    if (column >= first && column < first + count) {
      column -= static_cast<std::int32_t>(first);
      continue;
    }
    const auto found =
        std::lower_bound(order.begin(), order.end(), column,
                         [&](std::int32_t i, std::int64_t node) { return rings.nodes[i] < node; });
    column = static_cast<std::int32_t>(count) + *found;
  }
}

}  // namespace mpssm::nn
