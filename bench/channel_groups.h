// SPDX-License-Identifier: MIT
// What operators per group of channels cost: one operator for all channels beside three groups, by
// several shares. All groups have the same matrix, each in memory of its own: the same numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/operators.h"
#include "mpssm/ops/recurrence.h"

#include "bench/recurrence_contenders.h"
#include "bench/report.h"

namespace mpssm::bench {

/// Plan diagonal with an operator for each share.
inline Entry by_shares(const Recurrence& job, const graph::Graph& graph,
                       const std::vector<std::int64_t>& shares, Precision precision) {
  std::vector<graph::OperatorGroup> groups;
  for (const std::int64_t share : shares) groups.push_back({graph::make_gso(graph), share});
  const graph::Operators operators(std::move(groups));
  std::string name = precision == Precision::kBf16 ? "bf16 " : "mpssm ";
  if (operators.is_single()) name += "one operator";
  const std::vector<std::int64_t> begins = operators.channel_begins(job.channels);
  for (std::size_t g = 0; !operators.is_single() && g + 1 < begins.size(); ++g) {
    name += fmt::format("{}{}", g == 0 ? "" : " + ", begins[g + 1] - begins[g]);
  }
  return {name, [=] {
            return plain_job(make_arguments(job), [=](const auto& u, const auto& w) {
              return ops::recurrence_static(operators, u, {w}, job.hops + 1,
                                            {.plan = Plan::kDiagonal, .precision = precision})
                  .output;
            });
          }};
}

/// A graph that fits the core's cache, and one of the size of Roman-empire.
inline void run_channel_groups(const Settings& settings, Report& report) {
  constexpr std::int64_t kHops = 16;
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{2000, 2906}, {22'662, 32'927}};
  std::vector<std::int64_t> widths = {64, 128, 256};
  if (settings.quick) {
    sizes.resize(1);
    widths.resize(1);
  }
  for (const Precision precision : {Precision::kFloat32, Precision::kBf16}) {
    const bool rounded = precision == Precision::kBf16;
    for (const auto& [nodes, edges] : sizes) {
      for (const bool training : {false, true}) {
        for (const std::int64_t c : widths) {
          const std::string name =
              fmt::format("groups-n{}-{}-c{}{}", nodes, training ? "training" : "forward", c,
                          rounded ? "-bf16" : "");
          if (!report.wants(name)) continue;
          const graph::Graph graph = graph::make_random_connected(nodes, edges, 1);
          const Recurrence job = {graph::make_gso(graph), c, kHops, true, training};
          std::vector<Entry> entries;
          for (const std::vector<std::int64_t>& shares :
               {std::vector<std::int64_t>{1}, {1, 1, 1}, {2, 2, 1}, {4, 2, 1}, {5, 4, 1}}) {
            entries.push_back(by_shares(job, graph, shares, precision));
          }
          report.run(name, fmt::format("n = {}, c = {}, k = {}", nodes, c, kHops), entries,
                     settings.rounds, rounded ? Contest::kRounded : Contest::kSameNumbers);
        }
      }
    }
  }
}

}  // namespace mpssm::bench
