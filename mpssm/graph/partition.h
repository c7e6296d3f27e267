// SPDX-License-Identifier: MIT
// Nodes dealt to parts of about the same size, with few edges between them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mpssm/base/enum_table.h"
#include "mpssm/graph/gso.h"

namespace mpssm::graph {

enum class PartitionMethod {
  kMetis,   ///< METIS's k-way partition: few entries of A between parts
  kRanges,  ///< a breadth-first order (graph/order.h) cut into equal pieces
};
inline constexpr base::EnumRow<PartitionMethod> kPartitionMethods[] = {
    {PartitionMethod::kMetis, "metis"},
    {PartitionMethod::kRanges, "ranges"},
};
constexpr base::EnumTable<PartitionMethod> table_of(PartitionMethod) { return kPartitionMethods; }
constexpr std::string_view to_string(PartitionMethod method) {
  return table_of(method).name(method);
}

/// Whether this was built with METIS.
bool has_metis();

/// METIS where it is at hand and can count the entries (32 bits), else ranges.
PartitionMethod best_partition_method(const Gso& gso);

/// The part of each node, [N]; no part is empty. The same operator gives the same parts. Throws
/// base::Error unless 1 <= parts <= N, and for METIS where there is none.
std::vector<std::int32_t> partition_nodes(const Gso& gso, std::int64_t parts,
                                          PartitionMethod method);

}  // namespace mpssm::graph
