// SPDX-License-Identifier: MIT
// How a node is called: by its id if it has one, else by its number.
#pragma once

#include <cstdint>
#include <string>

#include "mpssm/data/bare_graph.h"

namespace mpssm::report {

/// For people: safe for one line of a terminal.
std::string node_name(const data::BareGraph& graph, std::int64_t node);

}  // namespace mpssm::report
