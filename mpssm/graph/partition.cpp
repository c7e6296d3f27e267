// SPDX-License-Identifier: MIT
#include "mpssm/graph/partition.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <limits>

#include "mpssm/base/error.h"
#include "mpssm/graph/order.h"

#ifdef MPSSM_HAS_METIS
#include <metis.h>
#endif

namespace mpssm::graph {
namespace {

#ifdef MPSSM_HAS_METIS

/// Neighbours in either direction, without loops, as METIS wants them.
struct Neighbours {
  std::vector<idx_t> first = {0};
  std::vector<idx_t> node;
};

Neighbours neighbours_of(const Gso& gso) {
  Neighbours result;
  const auto a = gso.view<double>();
  const auto b = gso.transpose_view<double>();
  result.node.reserve(gso.num_nonzeros());
  std::vector<std::int32_t> both;
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    both.clear();
    std::set_union(a.col + a.row_ptr[i], a.col + a.row_ptr[i + 1], b.col + b.row_ptr[i],
                   b.col + b.row_ptr[i + 1], std::back_inserter(both));
    for (const std::int32_t j : both) {
      if (j != i) result.node.push_back(j);
    }
    result.first.push_back(static_cast<idx_t>(result.node.size()));
  }
  return result;
}

std::vector<std::int32_t> by_metis(const Gso& gso, std::int64_t parts) {
  Neighbours neighbours = neighbours_of(gso);
  auto nodes = static_cast<idx_t>(gso.num_nodes());
  auto num_parts = static_cast<idx_t>(parts);
  idx_t constraints = 1;
  idx_t cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 0;
  std::vector<idx_t> part(nodes, 0);
  const int code = METIS_PartGraphKway(&nodes, &constraints, neighbours.first.data(),
                                       neighbours.node.data(), nullptr, nullptr, nullptr,
                                       &num_parts, nullptr, nullptr, options, &cut, part.data());
  if (code != METIS_OK) {
    throw base::Error(fmt::format("METIS could not cut {} nodes into {} parts{}", nodes, parts,
                                  code == METIS_ERROR_MEMORY ? ": out of memory" : ""));
  }
  return {part.begin(), part.end()};
}

#endif

std::vector<std::int32_t> by_ranges(const Gso& gso, std::int64_t parts) {
  const NodeOrder& order = node_order(gso);
  const std::int64_t nodes = gso.num_nodes();
  std::vector<std::int32_t> part(nodes);
  for (std::int64_t i = 0; i < nodes; ++i) {
    part[order.node[i]] = static_cast<std::int32_t>(i * parts / nodes);
  }
  return part;
}

bool has_empty_part(const std::vector<std::int32_t>& part, std::int64_t parts) {
  std::vector<bool> is_there(parts, false);
  for (const std::int32_t p : part) is_there[p] = true;
  return std::find(is_there.begin(), is_there.end(), false) != is_there.end();
}

}  // namespace

bool has_metis() {
#ifdef MPSSM_HAS_METIS
  return true;
#else
  return false;
#endif
}

PartitionMethod best_partition_method(const Gso& gso) {
  const bool can_count =
      gso.num_nonzeros() <= std::numeric_limits<std::int32_t>::max() / (gso.is_symmetric() ? 1 : 2);
  return has_metis() && can_count ? PartitionMethod::kMetis : PartitionMethod::kRanges;
}

std::vector<std::int32_t> partition_nodes(const Gso& gso, std::int64_t parts,
                                          PartitionMethod method) {
  if (parts < 1 || parts > gso.num_nodes()) {
    throw base::Error({.where = "--parts",
                       .expected = fmt::format("1 to {}, a node for each", gso.num_nodes()),
                       .got = std::to_string(parts)});
  }
  if (parts == 1) return std::vector<std::int32_t>(gso.num_nodes(), 0);
  if (method == PartitionMethod::kMetis) {
#ifdef MPSSM_HAS_METIS
    std::vector<std::int32_t> part = by_metis(gso, parts);
    // It may leave one empty where there are few nodes.
    if (!has_empty_part(part, parts)) return part;
#else
    throw base::Error({.where = "--method",
                       .expected = "ranges; this mpssm was built without METIS (libmetis-dev)",
                       .got = "metis"});
#endif
  }
  return by_ranges(gso, parts);
}

}  // namespace mpssm::graph
