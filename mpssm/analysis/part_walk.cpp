// SPDX-License-Identifier: MIT
#include "mpssm/analysis/part_walk.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "mpssm/graph/breadth_first.h"

namespace mpssm::analysis {
namespace {

constexpr double kNoWay = std::numeric_limits<double>::infinity();

/// Own nodes that read each own node and each of the halo: the rows, turned.
struct Readers {
  explicit Readers(const engine::HaloRows<double>& rows)
      : begin(static_cast<std::size_t>(rows.own() + rows.halo + 1), 0) {
    const kernels::CsrView<double>& a = rows.a;
    const auto for_entries = [&](const auto& visit) {
      for (std::int64_t i = 0; i < a.num_rows; ++i) {
        for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
          if (a.value[e] != 0.0) visit(i, a.col[e]);
        }
      }
    };
    for_entries([&](std::int64_t, std::int32_t read) { ++begin[read + 1]; });
    for (std::size_t j = 1; j < begin.size(); ++j) begin[j] += begin[j - 1];
    node.resize(static_cast<std::size_t>(begin.back()));
    std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
    for_entries([&](std::int64_t reader, std::int32_t read) {
      node[next[read]++] = static_cast<std::int32_t>(reader);
    });
  }
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> node;
};

}  // namespace

std::vector<double> own_pair_profile(const OwnParts& own, std::int64_t source, std::int64_t target,
                                     std::span<const std::int64_t> taus,
                                     const engine::Executor& executor, const Progress& progress) {
  Walk walk(own.rows, source, executor);
  std::vector<double> profile(taus.size(), 0.0);
  visit_taus(walk, taus, progress, [&](std::size_t i) {
    if (target >= 0) profile[i] = walk.values()[target];
  });
  return profile;
}

std::vector<Reach> own_reach_profiles(const OwnParts& own, std::int64_t node, View view,
                                      std::span<const std::int64_t> taus,
                                      const engine::Executor& executor, const Progress& progress) {
  Walk walk(view == View::kFromSource ? own.rows : own.transposed, node, executor);
  const std::size_t parts = own.bounds.size() - 1;
  std::vector<Reach> profiles(parts * taus.size());
  visit_taus(walk, taus, progress, [&](std::size_t i) {
    for (std::size_t p = 0; p < parts; ++p) {
      const auto values = walk.values().subspan(own.bounds[p], own.bounds[p + 1] - own.bounds[p]);
      profiles[p * taus.size() + i] = reach_of(values, walk.tau());
    }
  });
  return profiles;
}

void add_part(Reach& all, const Reach& part) {
  if (part.nodes > 0) {
    all.smallest = all.nodes > 0 ? std::min(all.smallest, part.smallest) : part.smallest;
  }
  all.tau = part.tau;
  all.nodes += part.nodes;
  all.largest = std::max(all.largest, part.largest);
  all.total += part.total;
}

std::vector<std::int32_t> own_hops_from(const OwnParts& own, std::int64_t source,
                                        const std::function<bool(bool here)>& any) {
  const std::int64_t count = own.rows.own();
  const Readers readers(own.rows);
  std::vector<double> hops(static_cast<std::size_t>(count + own.rows.halo), kNoWay);
  using Reached = std::pair<double, std::int64_t>;  // after so many hops: this node
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> next;
  if (source >= 0) next.emplace(hops.at(source) = 0.0, source);
  while (any(!next.empty())) {
    while (!next.empty()) {
      const auto [after, node] = next.top();
      next.pop();
      if (after > hops[node]) continue;  // there is a shorter way
      for (std::int64_t e = readers.begin[node]; e < readers.begin[node + 1]; ++e) {
        double& reader = hops[readers.node[e]];
        if (after + 1.0 < reader) next.emplace(reader = after + 1.0, readers.node[e]);
      }
    }
    const std::vector<double> known(hops.begin() + count, hops.end());
    own.rows.fill(hops.data(), 1);
    for (std::int64_t j = 0; j < own.rows.halo; ++j) {
      if (hops[count + j] < known[j]) next.emplace(hops[count + j], count + j);
    }
  }
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(hops[i] == kNoWay ? graph::kUnreachable : static_cast<std::int32_t>(hops[i]));
  }
  return result;
}

}  // namespace mpssm::analysis
