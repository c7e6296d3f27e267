// SPDX-License-Identifier: MIT
#include "mpssm/report/node_name.h"

#include "mpssm/base/printable.h"

namespace mpssm::report {

std::string node_name(const data::BareGraph& graph, std::int64_t node) {
  return graph.node_ids.empty() ? std::to_string(node) : base::printable(graph.node_ids[node]);
}

}  // namespace mpssm::report
