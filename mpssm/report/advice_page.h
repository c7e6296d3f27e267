// SPDX-License-Identifier: MIT
// Private to report/: advice as a section of a page.
#pragma once

#include <string>

#include "mpssm/analysis/advice.h"
#include "mpssm/data/bare_graph.h"

namespace mpssm::report {

/// Tables with a heading each; empty if there is nothing to say.
std::string advice_html(const data::BareGraph& graph, const analysis::Advice& advice);

}  // namespace mpssm::report
