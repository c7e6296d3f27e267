// SPDX-License-Identifier: MIT
// Advice about a graph: for people and for programs.
#pragma once

#include <string>

#include "mpssm/analysis/advice.h"
#include "mpssm/data/bare_graph.h"

namespace mpssm::report {

/// Lines and tables.
std::string to_text(const data::BareGraph& graph, const analysis::Advice& advice);

/// One JSON object on one line; numbers that are not finite become null.
std::string to_json(const data::BareGraph& graph, const analysis::Advice& advice);

}  // namespace mpssm::report
